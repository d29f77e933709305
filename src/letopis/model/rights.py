"""Rights: what somebody may do with an archive. A mask is their sum."""

READ, WRITE, OWN = 1, 2, 4

ROLES = {"guest": READ, "user": READ | WRITE, "owner": READ | WRITE | OWN}
SCOPES = {"read": READ, "write": READ | WRITE | OWN}
"""What a token may do of what its user may."""
