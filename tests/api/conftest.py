"""Archives and servers over them."""

from served_archive import archive, make_archive, web  # noqa: F401
