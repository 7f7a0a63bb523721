import SluiceCore
import SluiceRealm

// The durable state of a stream.
extension BridgeStream {
    /// A state, and the server version of the last complete view that it knows; 0 for none.
    struct StoredState: Hashable {
        var replica: BridgeReplica
        var view: UInt64
    }

    /// Returns the durable state at the end of the stream.
    var state: BridgeReplica {
        var state = replica
        (state.version, state.changeset) = (content.last, content.client)
        state.writeTime = steps.newest
        state.schema = content.sentSchema
        state.objects = content.isExact && !isOlder ? content.memory.view : nil
        state.barriers = content.memory.barriers
        state.parts = storedParts
        state.lists = content.lists
        state.steps = Array(steps.steps)
        state.repairs = repairs
        (state.created, state.listed) = ([:], 0)
        return state
    }

    /// The durable state, with the view that it knows.
    var current: StoredState { StoredState(replica: state, view: kept.view) }

    /// The states to store if `isStorable` is `false`: the last one, with what the log does not tell of the time since. It is left out if
    /// that is nothing. While it is unknown whether the last view was stored, there is one state for either case.
    ///
    /// It has the objects that the client has made, so that the next session can erase those that are gone by then, the client's lists, and
    /// the erasures that the client's changesets may not have known.
    var remainders: [StoredState] {
        var states = [kept]
        if fallback != nil, slices == nil, let viewState { states.append(viewState) }
        var remainders: [StoredState] = []
        for state in states { if let remainder = remainder(state) { remainders.append(remainder) } }
        return remainders
    }

    private func remainder(_ known: StoredState) -> StoredState? {
        guard known.replica.client > 0 else { return nil }
        var state = known.replica
        state.created.merge(created) { max($0, $1) }
        if state.created.count > BridgeReplica.mostObjects { state.created = known.replica.created }
        if content.lists != state.lists { (state.lists, state.listed) = (content.lists, content.last) }
        // The entries of these erasures are dropped once the client has them, and its older changesets may follow even later.
        state.barriers = content.memory.barriers
        state.repairs.merge(repairs) { $1 }
        return state == known.replica ? nil : StoredState(replica: state, view: known.view)
    }

    /// Records that a state is stored.
    mutating func keep(_ state: StoredState) {
        kept = state
        created = created.filter { own[$0.value] != nil }
    }

    /// `true` if objects are to be put right of which the last state does not know.
    var hasNewRepairs: Bool { repairs.contains { kept.replica.repairs[$0.key] != $0.value } }

    /// Records that the last state is stored again with the repairs.
    mutating func keepRepairs() { kept.replica.repairs.merge(repairs) { $1 } }

    /// Records that the last state is stored again with these parts.
    mutating func keep(parts: Set<ObjectKey>?) { kept.replica.parts = parts }

    /// `true` if the state can be stored: nothing is under way that a later session could not find in the log.
    var isStorable: Bool { fallback == nil && !isBehind && own.isEmpty && uncertain == 0 }
}
