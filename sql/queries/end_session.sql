-- Ends a session: what it has not committed is undone, and its locks go.
KILL CONNECTION {id}
