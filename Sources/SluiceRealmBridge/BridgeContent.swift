import SluiceCore
import SluicePorts
import SluiceRealm

/// The content of a client and the entries of its stream.
///
/// It describes the client at the end of the stream. No entry changes an object that the client does not hold.
struct BridgeContent {
    /// The objects in `touched`. Beyond, all are forgotten, and older bases count as conflicts.
    static let mostTouched = 10_000
    /// The erasures that a client may leave unconfirmed. A view of `BridgeBounds.viewObjects` has half as many objects.
    static let mostBarriers = 2_000_000
    /// The lists that a client may leave unconfirmed.
    static let mostLists = 1_000_000
    /// The number of the server as a file.
    static let server: UInt64 = 1

    let file: UInt64
    /// A random number that only this file's client and the gateway know.
    private let salt: UInt64
    private(set) var bridgeSchema: BridgeSchema
    /// The hash of the schema that the client received.
    var sentSchema: UInt64
    /// The objects that the client holds, and the erasures that it has not confirmed.
    var memory = RealmFileMemory()
    /// The lists that the client received as a whole.
    var lists = BridgeLists()
    /// `true` if `memory.view` names every object that the client holds.
    var isExact = true
    /// The highest version of the stream.
    var last: UInt64 = 0
    /// The version of the client up to which the stream has its changesets.
    var client: UInt64 = 0
    private var unconfirmed = BridgeUnconfirmed()
    /// The last version that changed each object, unless it is that of a barrier: the object entered or left.
    private var touched: [ObjectKey: UInt64] = [:]
    /// A bound of the versions in `touched`.
    private var lastTouched: UInt64 = 0
    /// The version up to which changes are forgotten.
    private var forgotten: UInt64 = 0

    /// - Parameter forgotten: The version up to which the changes of objects are unknown.
    init(_ file: RealmFileIdent, _ schema: BridgeSchema, sentSchema: UInt64, forgotten: UInt64) {
        (self.file, salt) = (file.ident, file.salt)
        bridgeSchema = schema
        self.sentSchema = sentSchema
        self.forgotten = forgotten
    }

    var schema: Schema { bridgeSchema.app.schema }
    var writer: RealmObjectWriter { bridgeSchema.writer }

    /// Adopts a newer version of the schema.
    mutating func adopt(_ newer: BridgeSchema) { bridgeSchema = newer }

    /// Adds the barriers of a stored state.
    /// - Parameters:
    ///   - received: The version that the client has. Unless they are stored, it never gets the entries of later barriers: it may hold
    ///     their objects, and they void none of its changes.
    ///   - versions: Those of stored entries, which bring their own barriers.
    mutating func restore(_ barriers: RealmBarriers, received: UInt64, except versions: Set<UInt64>) {
        var missed: [(object: ObjectKey, version: UInt64)] = []
        for (object, list) in barriers.lists(except: nil) {
            for barrier in list.all {
                if barrier.version <= received {
                    memory.setBarrier(object, barrier.version, barrier.stamp)
                } else if !versions.contains(barrier.version) {
                    missed.append((object, barrier.version))
                }
            }
        }
        for (object, version) in missed.sorted(by: { $0.version < $1.version }) { unconfirmed.miss(object, at: version) }
    }

    /// Adds an entry of the stored stream.
    /// - Parameters:
    ///   - isNew: `true` if the content is older than the entry.
    ///   - hasNewLists: `true` if `lists` is older than the entry.
    ///   - isReceived: `true` if the client has the entry. Otherwise a view may replace it.
    mutating func restore(
        _ entry: RealmStreamEntry, isNew: Bool, hasNewLists: Bool, isReceived: Bool
    ) throws(SluiceError) {
        for instruction in try RealmChangesetReader.instructions(of: entry.changeset) {
            switch instruction {
            case .createObject(let object): if isNew { memory.view.insert(object) }
            case .eraseObject(let object):
                if isNew { memory.view.remove(object) }
                lists.receive(object, at: entry.serverVersion)
                let replaced = memory.setBarrier(object, entry.serverVersion, RealmStamp(entry.timestamp, entry.origin))
                // The client may have held it. A view that replaces the entry erases it.
                if !isReceived { unconfirmed.send(object, wasHeld: true, replaced: replaced, at: entry.serverVersion) }
            case .clear(let path, .list) where hasNewLists && path.steps.isEmpty,
                .update(let path, .container(.object), _) where hasNewLists && path.steps.isEmpty:
                lists.send(
                    path.object, path.field,
                    BridgeLists.Sent(version: entry.serverVersion, time: entry.timestamp, client: entry.clientVersion))
            default: break
            }
        }
    }

    // MARK: Entries

    /// Returns the declarations that must precede the next instructions; empty if the client has the schema.
    mutating func declarations(_ place: Place, always: Bool = false) -> [RealmInstruction] {
        guard always || sentSchema != bridgeSchema.hash else { return [] }
        unconfirmed.declare(before: sentSchema, at: place.version)
        sentSchema = bridgeSchema.hash
        return RealmSchema.instructions(of: schema)
    }

    /// Returns an entry with the content.
    static func entry(
        _ changeset: [UInt8], _ operations: [OutgoingOperation], version: UInt64, client: UInt64, milliseconds: Int64, now: Int64,
        compensation: RealmCompensation? = nil
    ) -> OutgoingEntry {
        let entry = RealmStreamEntry(
            serverVersion: version, clientVersion: client, timestamp: RealmTime.timestamp(milliseconds: milliseconds), origin: server,
            changeset: changeset, created: now, compensation: compensation)
        return OutgoingEntry(entry: entry, operations: operations)
    }

    // MARK: Objects

    /// The place of an entry in the stream.
    struct Place {
        var version: UInt64
        /// Milliseconds since 1970.
        var time: Int64

        fileprivate var stamp: RealmStamp { RealmStamp(RealmTime.timestamp(milliseconds: time), BridgeContent.server) }

        fileprivate func sent(_ client: UInt64) -> BridgeLists.Sent {
            BridgeLists.Sent(version: version, time: stamp.time, client: client)
        }
    }

    /// Gives the client an object anew. Its pending changes of the object are void.
    mutating func enter(_ object: ObjectKey, _ row: Row, _ place: Place) throws(SluiceError) -> RealmEnteringObject {
        let entering = try writer.enter(object, row)
        enter(object, place)
        return entering
    }

    /// Records that the client is given an object anew.
    mutating func enter(_ object: ObjectKey, _ place: Place) {
        let replaced = memory.setBarrier(object, place.version, place.stamp)
        unconfirmed.send(object, wasHeld: !memory.view.insert(object).inserted, replaced: replaced, at: place.version)
        enter(object, inLists: place)
    }

    /// Gives an object to a client that may hold it. Its pending changes of the object stay.
    mutating func restore(_ object: ObjectKey, _ row: Row, _ place: Place) throws(SluiceError) -> [BridgeGroup] {
        // Not noted: the client may hold it even if it does not receive the entry.
        memory.view.insert(object)
        // Creating an object that exists changes nothing.
        // It may be the last object of a block or the first one of the next.
        let containers = prepareContainers(in: object.type, place)
        return [.instructions(containers + [.createObject(object)] + containers), try replace(object, row, nil, place)]
    }

    /// Records that the client is given objects anew.
    /// - Parameter expected: The number of objects to make room for.
    mutating func enter(_ objects: [ObjectKey], _ place: Place, expecting expected: Int) {
        guard memory.enterWhole(objects, place.version, place.stamp, expecting: expected) else {
            memory.reserve(expected)
            unconfirmed.reserve(expected)
            for object in objects { enter(object, place) }
            return
        }
        unconfirmed.enter(objects, at: place.version)
        guard lists.hasObjects else { return }
        for object in objects { enter(object, inLists: place) }
    }

    private mutating func enter(_ object: ObjectKey, inLists place: Place) {
        lists.send(object, place.sent(client))
        lists.receive(object, at: place.version)
    }

    /// Takes an object from the client. Its pending changes of the object are void.
    /// - Parameter isKnown: `false` if the client may hold an object that the content lacks.
    mutating func leave(_ object: ObjectKey, _ place: Place, isKnown: Bool = true) -> BridgeGroup {
        let replaced = memory.setBarrier(object, place.version, place.stamp)
        unconfirmed.send(object, wasHeld: memory.view.remove(object) != nil || !isKnown, replaced: replaced, at: place.version)
        lists.receive(object, at: place.version)
        return .instructions(writer.leave(object))
    }

    /// Gives properties of an object that the client holds their values. An object that it lacks enters.
    /// - Parameter names: The properties; nil for all. The client may have a value from before that its user must not see any more, so a
    ///   property that the row does not show is then emptied.
    mutating func replace(
        _ object: ObjectKey, _ row: Row, _ names: Set<String>?, _ place: Place
    ) throws(SluiceError) -> BridgeGroup {
        guard memory.view.contains(object) else { return .entering(try enter(object, row, place)) }
        noteReplaced(object, row, names, place)
        return .changed(try writer.replace(object, row, names, number: number(place)))
    }

    /// Records that the client receives properties of an object that it holds.
    mutating func noteReplaced(_ object: ObjectKey, _ row: Row, _ names: Set<String>?, _ place: Place) {
        touch(object, place.version)
        if bridgeSchema.discarding.contains(object.type) {
            for (index, property) in (schema[object.type]?.properties ?? []).enumerated() where property.hasDiscards {
                // Without names, a property that the row does not show is emptied.
                let isSent = names.map { $0.contains(property.name) && row[index] != nil } ?? true
                if isSent { lists.send(object, property.name, place.sent(client)) }
            }
        }
        if names == nil { lists.receive(object, at: place.version) }
    }

    /// Returns the instructions that precede a view, so that the app can put lists and dictionaries into its mixed values.
    func prepareContainers(_ place: Place) -> [RealmInstruction] {
        schema.types.flatMap { writer.prepareContainers(in: $0, number(place)) }
    }

    private func prepareContainers(in type: String, _ place: Place) -> [RealmInstruction] {
        schema[type].map { writer.prepareContainers(in: $0, number(place)) } ?? []
    }

    /// Returns the instructions that follow a changeset of the client. They complete the blocks of the objects that it made.
    func prepareContainers(after changeset: OwnChangeset, _ place: Place) -> [RealmInstruction] {
        let made = Set(changeset.objects.filter(\.value.isCreated).map(\.key.type))
        return schema.types.filter { made.contains($0.name) }.flatMap { writer.prepareContainers(in: $0, number(place)) }
    }

    /// A number that no other entry of the file has, and no other client can foresee. Otherwise it could create the object of the key
    /// before, and the entry would erase it at this client.
    private func number(_ place: Place) -> UInt64 { place.version ^ salt }

    private mutating func touch(_ object: ObjectKey, _ version: UInt64) {
        // Every object counts as changed at a version that is forgotten.
        guard version > forgotten else { return }
        // All at once: most have the version of one bootstrap. To keep some would cost the square of its objects.
        if touched.count >= Self.mostTouched {
            touched = [:]
            forgotten = max(forgotten, last, version)
        }
        touched[object] = version
        lastTouched = max(lastTouched, version)
    }

    /// Returns `true` if the client may not have known a change of the object when it was at a version.
    func isTouched(_ object: ObjectKey, after base: UInt64) -> Bool {
        max(touched[object] ?? 0, forgotten) > base || memory.isBarred(object, after: base)
    }

    /// Records the progress of the client: later changesets have this base or a newer one.
    mutating func confirm(_ base: UInt64) {
        memory.advance(client, base: base)
        // Most confirmations are of the last entry.
        if base >= lastTouched {
            if !touched.isEmpty { touched.removeAll(keepingCapacity: touched.count <= 8) }
        } else {
            touched = touched.filter { $0.value > base }
        }
    }

    /// Makes room for objects that enter.
    mutating func reserve(_ count: Int) {
        memory.reserve(count)
        unconfirmed.reserve(count)
    }

    /// Records that the client has made an object or deleted it, whatever entries it takes.
    mutating func make(_ object: ObjectKey, isHeld: Bool) {
        if isHeld { memory.view.insert(object) } else { memory.view.remove(object) }
        unconfirmed.make(object, isHeld: isHeld)
    }

    /// The objects that the client has made, as far as they are noted since its last confirmation, in no defined order. It may have deleted
    /// some. O(changes since).
    var made: Set<ObjectKey> { unconfirmed.made }

    /// `true` if the confirmation of entries frees much memory.
    var hasManyUnconfirmed: Bool { unconfirmed.count > 1_000 }

    /// Records that the client has all entries up to a version.
    mutating func confirmEntries(upTo version: UInt64) { unconfirmed.confirm(upTo: version) }

    /// Removes and returns the operations of objects that the client has made, for the check of its objects. Their changes were taken for
    /// void, and are not.
    /// - Throws: `internalError` for a key that is no primary key.
    mutating func takeStanding() throws(SluiceError) -> [OutgoingOperation] {
        var operations: [OutgoingOperation] = []
        for object in unconfirmed.takeStanding() where memory.view.contains(object) {
            operations.append(.create(try OutgoingOperation.Object(object)))
        }
        return operations
    }

    /// Takes the entries that the client does not have back: a bootstrap replaces them.
    /// - Parameter received: The version of the last entry that the client has.
    mutating func revertEntries(after received: UInt64) { unconfirmed.revert(after: received, &memory, &sentSchema) }

    /// Returns the content before a view that the client does not take.
    ///
    /// Versions, the progress of uploads, the records of lists and what the client has made since never go back.
    func restored(_ before: BridgeContent) -> BridgeContent {
        var content = before
        (content.last, content.client, content.lists) = (last, client, lists)
        content.unconfirmed.redo(unconfirmed, in: &content.memory)
        return content
    }

    /// Returns `true` if the client has discarded its changes of an object, because of an erasure in its stream.
    mutating func discards(_ object: ObjectKey, _ own: OwnChangeset.Object, _ writer: RealmWriter) -> Bool {
        guard memory.isBarred(object, writer) else { return false }
        // Its own later erasure stays, and so does everything behind it.
        if own.isErased, pass(object, writer) { return false }
        if own.isDeleted || own.isCreated { void(object, isHeld: !own.isDeleted, writer) }
        return true
    }

    /// Records that an entry has voided what the client has made or deleted.
    mutating func void(_ object: ObjectKey, isHeld: Bool, _ writer: RealmWriter) {
        unconfirmed.void(object, isHeld: isHeld, base: writer.base)
    }

    /// Lets the client's own later erasure pass.
    /// - Returns: `true` if the erasure is later than all that the client did not know.
    mutating func pass(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
        let barriers = memory.barriers[object]
        guard memory.pass(object, writer) else { return false }
        unconfirmed.pass(object, removed: barriers)
        return true
    }
}

extension Property {
    /// `true` if a client discards pending edits of lists when it receives the whole value: of a list, or of an embedded object.
    var hasDiscards: Bool {
        if collection == .list { return true }
        if case .embedded = type { return collection == .none }
        return false
    }
}
