/// Writes something without content into the write-ahead log.
package protocol LogMarker: Sendable {
    /// Returns when it is written; it comes back through the change source behind everything that was committed before.
    func mark() async throws
}
