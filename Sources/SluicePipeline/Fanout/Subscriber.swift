import SluiceCore

/// One who is told of changes: a session's view, live or on the way to it.
struct Subscriber {
    let channel: any SessionChannel
    let view: View
    /// Whose own changesets are told from others' transactions; nil: nobody's.
    let client: ClientID?
    /// Set while a bootstrap runs; live changes go out of the subscriber that it will replace.
    var staged: StagedChanges?
    /// Changes of the batch at hand: record index, event and type packed by `Token`.
    var tokens: [Token] = []
    /// Whether changesets of the client's own are among them.
    var hasOwn = false
    /// The client waits for the watermark to pass this.
    var wanted: LSN?

    /// The client's own changeset that a change is of; 0: none.
    func changeset(of change: DecodedChange) -> UInt64 {
        guard let origin = change.origin, origin.client == client else { return 0 }
        return origin.changeset
    }
}
