/// An error of a part of a query. The caller adds the query's text and throws a `SluiceError` that shows the place.
struct QueryError: Error {
    /// The reason, or the construct as the subject of "is not supported".
    let text: String
    let position: SourcePosition

    init(_ text: String, at position: SourcePosition = .unknown) {
        self.text = text
        self.position = position
    }
}
