import SluiceCore
import SluicePorts
import SluiceValues
import TestSupport
import Testing

@Suite struct `A session's permissions` {
    private static let type = ObjectType(
        name: "T",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "\u{E9}", type: .int, isOptional: true),
            Property(id: 3, name: "b", type: .string, isOptional: true),
        ])

    @Test func `are none for a class without rules`() {
        let plan = SessionPlan(types: ["T": .open])
        #expect(plan["T"].read == "TRUEPREDICATE" && plan["T"].insert)
        #expect(plan["U"] == .denied && !plan["U"].insert && !plan["U"].delete && plan["U"].read == "FALSEPREDICATE")
    }

    @Test func `hide what is not readable by its bytes, and never the key`() {
        var plan = TypePlan.open
        #expect(plan.hidden(of: Self.type).isEmpty)
        plan.fields.readable = ["b"]
        #expect(plan.hidden(of: Self.type) == [1])
        plan.fields.readable = ["e\u{301}", "b"]
        #expect(plan.hidden(of: Self.type) == [1], "equal letters of other bytes are another field")
        plan.fields.readable = []
        #expect(plan.hidden(of: Self.type) == [1, 2])
    }

    @Test func `differ by the bytes of their predicates, and by each other part`() {
        let plan = TypePlan(read: "name == '\u{E9}'", write: "TRUEPREDICATE", role: "r")
        var others = [TypePlan](repeating: plan, count: 8)
        others[0].read = "name == 'e\u{301}'"
        others[1].write = "FALSEPREDICATE"
        others[2].insert = false
        others[3].delete = false
        others[4].fields.readable = ["b"]
        others[5].role = "s"
        others[6].checkWrite = true
        others[7].grants = false
        for (index, other) in others.enumerated() { #expect(plan != other, "\(index)") }
        #expect(plan == plan)
    }
}

@Suite struct `Rows for rules` {
    private static let type = ObjectType(
        name: "T", properties: (0..<6).map { Property(id: UInt32($0 + 1), name: "p\($0)", type: .int, isOptional: true) })

    @Test(arguments: seeds(5)) func `have each object's values by name, and no absent ones`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let objects: [[String: Value]] = (0..<20).map { _ in
            var values: [String: Value] = [:]
            for property in Self.type.properties where random.chance(60) {
                values[property.name] = random.chance(20) ? .null : .int(Int64(random.below(9)))
            }
            return values
        }
        let rows = ObjectRows(type: Self.type, values: objects)
        for (index, values) in objects.enumerated() { #expect(rows.values(index) == values, "seed \(seed)") }
        let write = ProposedWrite(type: Self.type, operation: .update, before: objects[0], after: nil)
        #expect(write.after == nil && write.before == Row(objects[0], of: Self.type))
    }
}

@Suite struct `A time limit` {
    private struct Failure: Error {}

    @Test func `passes what comes in time, and what is thrown`() async throws {
        let environment = SystemEnvironment()
        #expect(try await environment.within(milliseconds: 60_000) { 5 } == 5)
        await #expect(throws: Failure.self) { try await environment.within(milliseconds: 60_000) { throw Failure() } }
    }

    @Test func `cancels what takes longer, and ends as it does`() async throws {
        let environment = SystemEnvironment()
        let wasCancelled = Watched(false)
        await #expect(throws: CancellationError.self) {
            try await environment.within(milliseconds: 5) {
                do { try await untilCancelled() } catch {
                    wasCancelled.change { $0 = true }
                    throw error
                }
            }
        }
        #expect(wasCancelled.value)
        // What answers its cancellation has an answer.
        let answer = try await environment.within(milliseconds: 5) {
            do { try await untilCancelled() } catch { return 7 }
            return 0
        }
        #expect(answer == 7)
    }

    @Test func `ends with its caller`() async throws {
        let call = Task { try await SystemEnvironment().within(milliseconds: 600_000) { try await untilCancelled() } }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
    }
}

@Suite struct `What passes between the gateway and its ports` {
    @Test func `keeps messages unencoded in frames of this process`() {
        let frame = MessageFrames().frame([1, 2, 3])
        #expect(frame.byteCount == 3 && MessageFrames.message(of: frame) == [1, 2, 3])
        #expect(MessageFrames.message(of: Frame(storage: Watched(0), byteCount: 3)) == nil)
    }

    @Test func `has no secrets without a sealer`() {
        #expect(NoSealer().seal([1], context: []).isEmpty && NoSealer().open([1], context: []) == nil)
    }

    /// A client is told of an ingest number only once nothing at or before it may have been missed.
    @Test(arguments: [(nil, 9, 9), (4, 9, 3), (9, 9, 8), (12, 9, 9), (1, 9, 0)] as [(UInt64?, UInt64, UInt64)])
    func `acknowledges ingest up to the first refusal`(refused: UInt64?, ingest: UInt64, told: UInt64) {
        let file = ClientFile(
            id: .server, secret: [], changeset: 0, ingest: ingest, refusedIngest: refused, session: 1, proven: ProvenHistory())
        #expect(file.toldIngest == told)
    }

    @Test func `is counted by its bytes in the stream of a file`() {
        let plain = RealmStreamEntry(serverVersion: 1, clientVersion: 1, timestamp: 0, origin: 0, changeset: [1, 2, 3], created: 0)
        #expect(plain.cost == 64 + 3)
        var compensating = plain
        compensating.compensation = RealmCompensation(
            serverVersion: 1, clientVersion: 1, rejected: [RealmRejectedUpdate(reason: "né", table: "T", key: [1, 2])])
        let (reason, table, key) = (3, 1, 2)
        #expect(compensating.cost == plain.cost + reason + table + key)
    }

    @Test func `is empty after a batch of changes is removed`() {
        var batch = CaptureBatch()
        #expect(batch.isEmpty)
        batch.schemas = ["v2"]
        batch.gap = LSN(rawValue: 5)
        #expect(!batch.isEmpty)
        batch.removeAll()
        #expect(batch.isEmpty && batch.gap == .zero)
    }
}
