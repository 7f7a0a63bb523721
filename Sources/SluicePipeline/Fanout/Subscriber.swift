import SluiceCore
import SluicePorts

/// A session's view that receives changes, live or staged.
struct Subscriber {
    let channel: any SessionChannel
    let view: View
    /// The client whose own changesets are attributed; nil for none.
    let client: ClientID?
    /// The staged changes during a bootstrap; nil once live. The subscriber to be replaced stays live meanwhile.
    var staged: StagedChanges?
    /// The changes of the current batch, packed by `Token`.
    var tokens: [Token] = []
    /// `true` if changesets of the client itself are among them.
    var hasOwn = false
    /// The position that the client waits for; nil if none.
    var wanted: LSN?

    /// Returns the client's own changeset number of a change; 0 for none.
    func changeset(of change: DecodedChange) -> UInt64 {
        guard let origin = change.origin, origin.client == client else { return 0 }
        return origin.changeset
    }
}
