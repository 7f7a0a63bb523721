import SluiceCore
import SluiceRealm

/// The lists that a client received as a whole, the changesets that empty lists, and the objects that the client created.
///
/// A client that receives the Clear of a list discards its pending edits of this list. The gateway merges these edits all the same. The
/// indices of the client's later changesets refer to a list without them, until its base includes their outcome.
///
/// The server may have an object that a client creates, outside of the client's view. Until the client receives the row, its lists have
/// its own elements alone.
///
/// Memory: an entry for each list that the client has not confirmed. The owner bounds `count`. Objects that the client created are those
/// of changesets under way, and those whose erasure the client has not confirmed. Both have bounds elsewhere.
struct BridgeLists: Hashable {
    /// A list in the stream of the client.
    struct Sent: Hashable {
        /// The version of its entry.
        var version: UInt64
        /// Milliseconds since 2015-01-01.
        var time: UInt64
        /// The version of the client up to which the list has the client's changes.
        var client: UInt64
        /// A version of the stream at which it had passed the pending changesets; nil if it had not.
        var settled: UInt64?
    }

    /// A changeset of the client that empties a list, or replaces the object around it.
    struct Emptying: Hashable {
        var changeset: UInt64
        /// Milliseconds since 2015-01-01.
        var time: UInt64
    }

    /// The first changeset that was made at a version of the stream.
    struct Base: Hashable {
        var version: UInt64
        var changeset: UInt64
    }

    /// What is known of one property. The empty name stands for all properties of an object.
    struct List: Hashable {
        /// In the order of their versions.
        var sent: [Sent] = []
        /// In the order of their numbers. The times go down: an emptying with a later one behind it decides nothing.
        var emptied: [Emptying] = []
    }

    /// The last changeset that creates an object.
    struct Creation: Hashable {
        var changeset: UInt64
        /// The version of the stream at which the client wrote it.
        var base: UInt64
        /// The version of the first entry that gives a property, or gives or takes the object. The empty name stands for the object.
        var received: [String: UInt64] = [:]
    }

    private(set) var lists: [ObjectKey: [String: List]] = [:]
    private(set) var creations: [ObjectKey: Creation] = [:]
    /// In ascending order.
    private(set) var bases: [Base] = []
    /// The last changeset that is known.
    private var last: UInt64 = 0
    /// The last changeset of each object that the stream has not passed.
    private var inFlight: [ObjectKey: UInt64] = [:]
    /// The number of lists and changesets that are remembered.
    private(set) var count = 0

    /// `true` if records of whole objects depend on the stream.
    var hasObjects: Bool { !inFlight.isEmpty || !creations.isEmpty }

    // MARK: The stream

    /// Records that a property was sent as a whole.
    mutating func send(_ object: ObjectKey, _ property: String, _ sent: Sent) {
        lists[object, default: [:]][property, default: List()].sent.append(sent)
        count += 1
        if !property.isEmpty { receive(object, property, at: sent.version) }
    }

    /// Records that an entry gives a property, or gives or takes the object as a whole.
    mutating func receive(_ object: ObjectKey, _ property: String = "", at version: UInt64) {
        guard let creation = creations[object], creation.base < version, creation.received[property] == nil else { return }
        creations[object]?.received[property] = version
    }

    /// Records that a view gives what the client's changesets up to a number made, except for some objects.
    mutating func receiveCreations(upTo number: UInt64, at version: UInt64, except objects: Set<ObjectKey>) {
        for (object, creation) in creations where creation.changeset <= number && !objects.contains(object) {
            receive(object, at: version)
        }
    }

    /// Records that an object was sent anew. Pending changesets that arrive later are void, those under way are not.
    mutating func send(_ object: ObjectKey, _ sent: Sent) { if inFlight[object] != nil { send(object, "", sent) } }

    /// Records that a changeset is on its way through the pipeline.
    mutating func begin(_ number: UInt64, _ objects: some Sequence<ObjectKey>) { for object in objects { inFlight[object] = number } }

    /// Records that the stream has passed a changeset.
    mutating func pass(_ number: UInt64, _ objects: some Sequence<ObjectKey>) {
        for object in objects where inFlight[object] == number { inFlight[object] = nil }
    }

    // MARK: The client's changesets

    /// Records that all changesets up to a number have taken effect.
    mutating func resume(at number: UInt64) { last = max(last, number) }

    /// Records a changeset of the client. A repeated one changes nothing.
    mutating func receive(_ number: UInt64, base: UInt64, time: UInt64, _ instructions: [RealmInstruction]) {
        if base > bases.last?.version ?? 0 {
            bases.append(Base(version: base, changeset: number))
            count += 1
        }
        last = max(last, number)
        for instruction in instructions {
            switch instruction {
            case .clear(let path, .list) where path.steps.isEmpty: empty(path.object, path.field, Emptying(changeset: number, time: time))
            // An embedded object. Other properties have no records to compare with.
            case .update(let path, .container(.object), _) where path.steps.isEmpty,
                .update(let path, .value(.null), _) where path.steps.isEmpty:
                empty(path.object, path.field, Emptying(changeset: number, time: time))
            // An erasure beats every change of the object.
            case .eraseObject(let object): empty(object, "", Emptying(changeset: number, time: .max))
            default: break
            }
        }
    }

    /// Records the objects that a changeset creates.
    mutating func create(_ number: UInt64, base: UInt64, _ instructions: [RealmInstruction]) {
        var isCreated: [ObjectKey: Bool] = [:]
        for instruction in instructions {
            switch instruction {
            case .createObject(let object): isCreated[object] = true
            case .eraseObject(let object): isCreated[object] = false
            default: break
            }
        }
        for (object, isCreated) in isCreated where creations[object].map({ $0.changeset < number }) ?? true {
            creations[object] = isCreated ? Creation(changeset: number, base: base) : nil
        }
    }

    /// Forgets a creation of an object that the server did not have. All elements of its lists are known.
    mutating func settle(_ object: ObjectKey, createdBy number: UInt64) {
        if creations[object]?.changeset == number { creations[object] = nil }
    }

    /// Returns the changeset that created an object, if the client's value of a property has the client's changes alone; nil otherwise.
    /// - Parameters:
    ///   - base: The version of the stream at which the client wrote.
    ///   - number: The changeset of the client, which is recorded already.
    func creation(of object: ObjectKey, _ property: String, base: UInt64, by number: UInt64) -> UInt64? {
        guard let creation = creations[object], creation.changeset <= number else { return nil }
        let isReceived = [property, ""].contains { name in creation.received[name].map { $0 <= base } ?? false }
        return isReceived ? nil : creation.changeset
    }

    private mutating func empty(_ object: ObjectKey, _ property: String, _ emptying: Emptying) {
        let known = lists[object]?[property]?.emptied ?? []
        if let newest = known.last?.changeset, newest >= emptying.changeset { return }
        let kept = known.filter { $0.time > emptying.time } + [emptying]
        lists[object, default: [:]][property, default: List()].emptied = kept
        count += kept.count - known.count
    }

    /// Returns the last changeset that was made before the client had a version.
    private func lastChangeset(before version: UInt64) -> UInt64 {
        var (low, high) = (0, bases.count)
        while low < high {
            let middle = (low + high) / 2
            if bases[middle].version < version { low = middle + 1 } else { high = middle }
        }
        return low < bases.count ? max(bases[low].changeset, 1) - 1 : last
    }

    /// Returns the number of the last changeset whose edits of a property are not in the client's list; nil for none.
    /// - Parameters:
    ///   - base: The version of the stream at which the client wrote.
    ///   - number: The changeset of the client, which is recorded already.
    func discarded(_ object: ObjectKey, _ property: String, base: UInt64, by number: UInt64) -> UInt64? {
        guard let known = lists[object] else { return nil }
        let candidates = [known[property], known[""]].compactMap(\.self)
        var emptied = candidates.flatMap(\.emptied)
        var discarded: UInt64?
        for sent in candidates.flatMap(\.sent).sorted(by: { $0.version < $1.version }) where sent.version <= base {
            let pending = lastChangeset(before: sent.version)
            guard pending > sent.client else { continue }
            // A later Clear of the client beats the one that it received, unless another one has discarded it.
            if emptied.contains(where: { $0.changeset > sent.client && $0.changeset <= pending && $0.time >= sent.time }) { continue }
            emptied.removeAll { $0.changeset <= pending }
            discarded = max(discarded ?? 0, pending)
        }
        // After a Clear, all elements are the client's.
        guard let discarded, !emptied.contains(where: { $0.changeset > discarded && $0.changeset < number }) else { return nil }
        return discarded
    }

    // MARK: Memory

    /// Drops what no later changeset needs.
    /// - Parameters:
    ///   - base: The version that the client has confirmed. Later changesets have this base or a newer one.
    ///   - passed: The changeset up to which the stream has passed the client's.
    ///   - end: The end of the stream.
    mutating func confirm(_ base: UInt64, passed: UInt64, end: UInt64) {
        if !creations.isEmpty { creations = creations.filter { $0.value.received[""].map { $0 > base } ?? true } }
        guard count > 0 else { return }
        var rest: [ObjectKey: [String: List]] = [:]
        for (object, properties) in lists {
            var kept = properties.mapValues { confirmed($0, base, passed: passed, end: end) }
            let oldest = kept.values.flatMap(\.sent).map(\.client).min() ?? .max
            for property in kept.keys { kept[property]?.emptied.removeAll { $0.changeset <= min(passed, oldest) } }
            kept = kept.filter { !$0.value.sent.isEmpty || !$0.value.emptied.isEmpty }
            if !kept.isEmpty { rest[object] = kept }
        }
        lists = rest
        let sent = lists.values.flatMap { $0.values.flatMap(\.sent) }
        let oldest = sent.map(\.version).min() ?? .max
        bases.removeAll { $0.version < oldest }
        count = bases.count + sent.count + lists.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.emptied.count } }
    }

    private func confirmed(_ list: List, _ base: UInt64, passed: UInt64, end: UInt64) -> List {
        let known = list.sent.prefix { $0.version <= base }
        var (kept, latest) = ([Sent](), UInt64?.none)
        // A list that the client has stands for the ones before it, unless they are of a later time: they beat more Clears.
        for var sent in known.reversed() where latest.map({ sent.time > $0 }) ?? true {
            latest = sent.time
            let pending = lastChangeset(before: sent.version)
            if pending <= passed, sent.settled == nil { sent.settled = end }
            if pending > sent.client, sent.settled.map({ $0 > base }) ?? true { kept.append(sent) }
        }
        return List(sent: kept.reversed() + list.sent.dropFirst(known.count), emptied: list.emptied)
    }

    // MARK: State

    /// Drops what entries after a version brought.
    mutating func forget(after version: UInt64) {
        for (object, properties) in lists {
            for (property, list) in properties {
                let sent = list.sent.filter { $0.version <= version }
                count -= list.sent.count - sent.count
                lists[object]?[property]?.sent = sent
            }
        }
        for (object, creation) in creations { creations[object]?.received = creation.received.filter { $0.value <= version } }
    }

    /// Restores a stored list.
    mutating func restore(_ object: ObjectKey, _ property: String, _ list: List) {
        lists[object, default: [:]][property] = list
        count += list.sent.count + list.emptied.count
    }

    mutating func restore(_ base: Base) {
        bases.append(base)
        count += 1
    }

    mutating func restore(_ object: ObjectKey, _ creation: Creation) {
        creations[object] = creation
    }
}
