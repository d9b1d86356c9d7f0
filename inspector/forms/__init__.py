"""What people type, checked: each form says in words what is allowed."""
