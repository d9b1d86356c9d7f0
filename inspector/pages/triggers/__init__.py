"""At which threshold each agent really compacts, over all sessions of a project."""
