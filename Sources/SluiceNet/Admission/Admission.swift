/// The open connections of a server, counted in total and by address, and the decision on each new one. Pure.
///
/// `AdmissionLimits.connections` bounds its size: an address is removed with its last connection. Every step costs amortised O(1).
package struct Admission: Sendable {
    package typealias ID = UInt64

    package enum Decision: Equatable, Sendable {
        /// - Parameter evicted: the connection to close in exchange.
        case admit(ID, evicted: ID?)
        case refuse(NetRefusal)
    }

    private struct Entry {
        var group: NetworkAddress?
        var isAuthenticated = false
        /// The entry's valid place in `queue`. Older places of the entry are void.
        var turn: UInt64
    }

    package struct Count: Hashable, Sendable {
        package var all = 0
        package var unauthenticated = 0
    }

    let limits: AdmissionLimits
    private var entries: [ID: Entry] = [:]
    private var groups: [NetworkAddress: Count] = [:]
    package private(set) var unauthenticated = 0
    private var turns: UInt64 = 0
    /// The unauthenticated connections, the longest unused first, with void places.
    private var queue: [(id: ID, turn: UInt64)] = []
    private var head = 0

    package init(limits: AdmissionLimits) { self.limits = limits }

    package var count: Int { entries.count }

    package func count(of group: NetworkAddress) -> Count { groups[group] ?? Count() }

    /// The number of kept entries, void ones included.
    package var size: Int { entries.count + groups.count + queue.count }

    /// Decides on a new connection.
    /// - Parameter group: `nil` if the limits by address do not apply.
    package mutating func open(_ group: NetworkAddress?) -> Decision {
        if let group, let refusal = refusal(count(of: group)) { return .refuse(refusal) }
        var evicted: ID?
        if entries.count >= limits.connections || unauthenticated >= limits.unauthenticated {
            // Admit the newest: an attacker that holds connections open must not exclude others.
            guard let oldest = oldestUnauthenticated() else { return .refuse(.full) }
            close(oldest)
            evicted = oldest
        }
        turns += 1
        let id = turns
        entries[id] = Entry(group: nil, turn: id)
        unauthenticated += 1
        enqueue(id, id)
        if let group { count(id, under: group) }
        return .admit(id, evicted: evicted)
    }

    /// Counts a proxy's connection under the address of its client, which is known from its first request on.
    /// - Returns: `nil` if the connection may stay.
    package mutating func identify(_ id: ID, as group: NetworkAddress) -> NetRefusal? {
        guard let entry = entries[id], entry.group == nil else { return nil }
        if let refusal = refusal(count(of: group)) { return refusal }
        count(id, under: group)
        return nil
    }

    /// Marks a connection as authenticated: it no longer counts as unauthenticated and is not evicted.
    package mutating func authenticate(_ id: ID) {
        guard let entry = entries[id], !entry.isAuthenticated else { return }
        entries[id]?.isAuthenticated = true
        unauthenticated -= 1
        if let group = entry.group { groups[group]?.unauthenticated -= 1 }
    }

    package func isAuthenticated(_ id: ID) -> Bool { entries[id]?.isAuthenticated == true }

    /// Records a request: the connection becomes the last to be evicted.
    package mutating func touch(_ id: ID) {
        guard let entry = entries[id], !entry.isAuthenticated else { return }
        turns += 1
        entries[id]?.turn = turns
        enqueue(id, turns)
    }

    package mutating func close(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if !entry.isAuthenticated { unauthenticated -= 1 }
        guard let group = entry.group, var count = groups[group] else { return }
        count.all -= 1
        if !entry.isAuthenticated { count.unauthenticated -= 1 }
        groups[group] = count.all > 0 ? count : nil
    }

    // MARK: Steps

    private func refusal(_ count: Count) -> NetRefusal? {
        if count.all >= limits.connectionsPerAddress { return .address }
        return count.unauthenticated >= limits.unauthenticatedPerAddress ? .addressUnauthenticated : nil
    }

    private mutating func count(_ id: ID, under group: NetworkAddress) {
        entries[id]?.group = group
        groups[group, default: Count()].all += 1
        if entries[id]?.isAuthenticated == false { groups[group]?.unauthenticated += 1 }
    }

    private mutating func oldestUnauthenticated() -> ID? {
        while head < queue.count {
            let (id, turn) = queue[head]
            if let entry = entries[id], entry.turn == turn, !entry.isAuthenticated { return id }
            head += 1
        }
        return nil
    }

    private mutating func enqueue(_ id: ID, _ turn: UInt64) {
        queue.append((id, turn))
        // Drop void places once they are the majority. This bounds the queue by a multiple of the connections.
        guard queue.count > 2 * unauthenticated + 64 else { return }
        queue = queue[head...].filter { place in
            guard let entry = entries[place.id] else { return false }
            return entry.turn == place.turn && !entry.isAuthenticated
        }
        head = 0
    }
}
