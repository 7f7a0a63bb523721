import SluiceCore
import SluiceMerge
import SluiceWire
import Testing

/// Another protocol's front-end would turn its instructions into our changesets: each of them can be said, goes over the wire, and does
/// at the merge what it does there, addressed by the writer's own indices, with the time and the client that it came from.
@Suite struct `The instructions of a Realm's own changesets` {
    private static let time = HybridTime(milliseconds: 1_000)

    @Test func `are fourteen`() { #expect(Instruction.all.map(\.tag).sorted() == Array(0..<14)) }

    @Test(arguments: Instruction.all)
    func `can each be said`(instruction: Instruction) throws {
        #expect(!instruction.forms.isEmpty)
        for form in instruction.forms {
            switch form {
            case .changes(let changes, let outcome): try Self.expect(changes, outcome)
            case .stated(let type): #expect(try Schema(messages: Schema([type]).messages) == Schema([type]))
            case .elsewhere(let place): #expect(!place.isEmpty)
            }
        }
    }

    private static func expect(_ changes: [ObjectChange], _ outcome: [String: Value?]) throws {
        let changeset = Changeset(number: 3, time: time, base: LSN(rawValue: 1), changes: changes)
        let bytes = try WireProtocol.encode(try PBChangeset(changeset, schema: Instruction.schema))
        let read = try Changeset(try WireProtocol.decode(PBChangeset.self, from: bytes), schema: Instruction.schema)
        #expect(read == changeset)
        var state = try started()
        for change in read.changes { try apply(change, to: &state, at: read.time, client: 2) }
        var expected = Instruction.start.filter { outcome[$0.key] == nil }
        for case (let name, let value?) in outcome where value != .null { expected[name] = value }
        #expect(state.shown == expected, "\(changes)")
    }

    private static func started() throws -> ObjectState {
        var state = ObjectState(row: nil, clocks: nil, type: Instruction.thing, rowTime: 0)
        let start = ObjectChange(object: Instruction.key, kind: .create, values: Instruction.start)
        try apply(start, to: &state, at: HybridTime(milliseconds: 1), client: 1, base: 0)
        return state
    }

    private static func apply(
        _ change: ObjectChange, to state: inout ObjectState, at time: HybridTime, client: UInt64, base: UInt64 = 1
    ) throws {
        let writer = WriteContext(
            stamp: WriteStamp(time: time, client: ClientID(rawValue: client)), base: LSN(rawValue: base), now: LSN(rawValue: base))
        try Merge.apply(change, by: writer, to: &state, type: Instruction.thing)
    }

    @Test func `are told apart by their time, and at one time by who sent them`() throws {
        func name(_ writers: [(time: Int64, client: UInt64)]) throws -> Value? {
            var state = try Self.started()
            for (time, client) in writers {
                let change = ObjectChange(object: Instruction.key, kind: .set, values: ["name": .string("\(client)")])
                try Self.apply(change, to: &state, at: HybridTime(milliseconds: time), client: client)
            }
            return state.values?["name"]
        }
        for order in [[0, 1], [1, 0]] {
            let (late, other) = ([(20, 2), (10, 3)] as [(Int64, UInt64)], [(10, 2), (10, 3)] as [(Int64, UInt64)])
            #expect(try name(order.map { late[$0] }) == "2")
            #expect(try name(order.map { other[$0] }) == "3")
        }
    }
}

extension ObjectState {
    /// Its values that are not null or empty.
    fileprivate var shown: [String: Value] {
        (values ?? [:]).filter { !$0.value.isNull && $0.value != .list([]) && $0.value != .dictionary([:]) && $0.key != "_id" }
    }
}
