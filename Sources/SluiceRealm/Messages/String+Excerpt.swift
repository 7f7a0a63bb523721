extension String {
    /// The first 64 scalars of a client's name, for error messages: the name may be as long as the client's message.
    var excerpt: String { String(unicodeScalars.prefix(64)) }
}
