"""Facts: which sentences, paths and numbers of a session each request still holds, where they were lost, and when they
were read again. `texts` and `instructions` are words alone, `proposals` what is worth following, `lanes` the search."""
