// The forms of values belong to Core's vocabulary, so a file that imports Core has them.
@_exported public import SluiceValues
