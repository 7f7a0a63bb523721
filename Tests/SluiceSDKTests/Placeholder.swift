// Filled by the tests of this room.
