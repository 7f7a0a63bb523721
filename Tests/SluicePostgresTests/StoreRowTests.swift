import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Synchronization
import TestSupport
import Testing

/// What a waiting transaction waits for.
private final class Gate: Sendable {
    let asked = Atomic(0)
    private let isOpen = Watched(false)

    func open() { isOpen.change { $0 = true } }

    func pass() async throws {
        asked.wrappingAdd(1, ordering: .relaxed)
        try #require(await isOpen.until { $0 })
    }
}

@Suite struct `Client writes` {
    private func client(_ fixture: StoreFixture) async throws -> ClientID {
        try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
    }

    @Test(arguments: [UInt64.random(in: .min ... .max), 1])
    func `come back as they were written, for every type of property`(seed: UInt64) async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            var generator = SplitMix64(seed: seed)
            let rows = (0..<20).map { _ in randomItem(&generator) }
            try await fixture.write(client, changeset: 1) { transaction in
                for row in rows { try transaction.write("Item", key: row[0] ?? .null, .insert(row), clocks: .mark(12)) }
            }
            let loaded = try await fixture.rows.transaction { try $0.load($1, "Item", keys: rows.compactMap { $0[0] }) }.result
            for row in rows { #expect(loaded[row[0] ?? .null]?.row == row, "seed \(seed)") }
            #expect(loaded.values.allSatisfy { $0.clocks == .mark(12) && $0.rowTime > 1_700_000_000_000 })
            // One key is looked up in another way than several.
            for key in loaded.keys {
                let one = try await fixture.rows.transaction { try $0.load($1, "Item", keys: [key]) }.result
                #expect(one == loaded.filter { $0.key == key }, "seed \(seed)")
            }
        }
    }

    @Test func `are read with their clocks without a lock, and say which transactions wrote both`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            var generator = SplitMix64(seed: 1)
            let rows = (0..<3).map { _ in randomItem(&generator) }
            let keys = rows.compactMap { $0[0] }
            try await fixture.write(client, changeset: 1) { transaction in
                for row in rows { try transaction.write("Item", key: row[0] ?? .null, .insert(row), clocks: .mark(12)) }
            }
            try await fixture.write(client, changeset: 2) { transaction in
                try transaction.write("Item", key: keys[0], .nothing, clocks: .mark(3))
            }
            let (pool, shape) = (fixture.pool, try StoreFixture.shape("Item"))
            let store = PostgresSnapshotStore(pool: pool)
            // Whoever holds the locks keeps nobody waiting.
            let read = try await fixture.rows.waitingTransaction { transaction, connection in
                _ = try await connection.withSession { try transaction.load($0, "Item", keys: keys) }
                return try await store.stored(shape, keys: keys).objects
            }.result
            for (row, key) in zip(rows, keys) {
                let object = try #require(read[key])
                #expect(object.row == row && object.rowTime > 1_700_000_000_000 && object.clocks == .mark(key == keys[0] ? 3 : 12))
                #expect((object.writer == object.clocksWriter) == (key != keys[0]))
            }
            let one = try await store.stored(shape, keys: [keys[1]]).objects
            #expect(one == read.filter { $0.key == keys[1] })
        }
    }

    @Test func `that wait for somebody else keep nobody waiting who does not, however many they are`() async throws {
        try await StoreFixture.with { fixture in
            let (main, waiting) = (PostgresPool(fixture.conninfo, size: 1), PostgresPool(fixture.conninfo, size: 2))
            let rows = PostgresRowStore(pool: main, waiting: waiting, log: DurableLog(pool: main), tables: StoreFixture.shape)
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Two have a connection, the others stand in line.
                let gate = Gate()
                for _ in 0..<5 {
                    group.addTask {
                        _ = try await rows.waitingTransaction { _, _ in try await gate.pass() }
                    }
                }
                while gate.asked.load(ordering: .relaxed) < 2 || waiting.waiting < 3 { await Task.yield() }
                let client = try await client(fixture)
                for number in UInt64(1)...20 {
                    let origin = Origin(client: client, changeset: number)
                    _ = try await rows.transaction { transaction, session in
                        _ = try transaction.open(session, origin)
                        transaction.finish(origin, time: .zero, base: .zero)
                    }
                }
                gate.open()
                try await group.waitForAll()
            }
            await main.close()
            await waiting.close()
        }
    }

    @Test func `that meet a row which a waiting one keeps leave their connection to others meanwhile`() async throws {
        try await StoreFixture.with { fixture in
            let (main, waiting) = (PostgresPool(fixture.conninfo, size: 1), PostgresPool(fixture.conninfo, size: 2))
            let rows = PostgresRowStore(pool: main, waiting: waiting, log: DurableLog(pool: main), tables: StoreFixture.shape)
            let client = try await client(fixture)
            let key = Value.objectId(ObjectIdentifierBytes(high: 3, low: 3))
            try await fixture.write(client, changeset: 1) {
                try $0.write("Store", key: key, .insert(Row([key, .string("0")])), clocks: .mark(0))
            }
            let (locked, signal) = AsyncStream<Void>.makeStream()
            async let theirs = {
                for await _ in locked { break }
                return try await rows.transaction { try $0.load($1, "Store", keys: [key])[key] }.result
            }()
            _ = try await rows.waitingTransaction { transaction, connection in
                _ = try await connection.withSession { try transaction.load($0, "Store", keys: [key]) }
                signal.finish()
                try await fixture.waitForBlocked("SELECT stored.%")
                for _ in 0..<20 { _ = try await main.withSession(within: .seconds(5)) { try $0.query("SELECT 1") } }
                try await fixture.waitForBlocked("SELECT stored.%")
                try transaction.write("Store", key: key, .update([1: .string("1")]), clocks: .mark(1))
            }
            let found = try await theirs
            #expect(found?.row?[1] == .string("1") && found?.clocks == .mark(1))
            await main.close()
            await waiting.close()
        }
    }

    @Test func `that meet their client's line, which a waiting one keeps, leave their connection to others meanwhile`() async throws {
        try await StoreFixture.with { fixture in
            let (main, waiting) = (PostgresPool(fixture.conninfo, size: 1), PostgresPool(fixture.conninfo, size: 2))
            let rows = PostgresRowStore(pool: main, waiting: waiting, log: DurableLog(pool: main), tables: StoreFixture.shape)
            let client = try await client(fixture)
            let (locked, signal) = AsyncStream<Void>.makeStream()
            async let theirs = {
                for await _ in locked { break }
                return try await rows.transaction { try $0.open($1, Origin(client: client, changeset: 2)).changeset }.result
            }()
            _ = try await rows.waitingTransaction { transaction, connection in
                let origin = Origin(client: client, changeset: 1)
                _ = try await connection.withSession { try transaction.open($0, origin) }
                signal.finish()
                try await fixture.waitForBlocked("WITH c AS%")
                for _ in 0..<20 { _ = try await main.withSession(within: .seconds(5)) { try $0.query("SELECT 1") } }
                try await fixture.waitForBlocked("WITH c AS%")
                transaction.finish(origin, time: .zero, base: .zero)
            }
            #expect(try await theirs == 1)
            await main.close()
            await waiting.close()
        }
    }

    @Test func `insert, update, delete and leave clocks behind`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            var generator = SplitMix64(seed: 5)
            let row = randomItem(&generator)
            let key = row[0] ?? .null
            try await fixture.write(client, changeset: 1) { try $0.write("Item", key: key, .insert(row), clocks: .mark(1)) }
            try await fixture.write(client, changeset: 2) {
                try $0.write("Item", key: key, .update([1: .string("renamed"), 3: .null]), clocks: .mark(2))
            }
            try await fixture.write(client, changeset: 3) { try $0.write("Item", key: key, .nothing, clocks: .mark(3)) }
            let updated = try await fixture.rows.transaction { try $0.load($1, "Item", keys: [key]) }.result[key]
            #expect(updated?.row?[1] == .string("renamed") && updated?.row?[3] == .null && updated?.clocks == .mark(3))
            try await fixture.write(client, changeset: 4) {
                try $0.write("Item", key: key, .delete, clocks: .mark(4, deletedAt: LSN(rawValue: 77)))
            }
            let gone = try await fixture.rows.transaction { try $0.load($1, "Item", keys: [key]) }.result[key]
            #expect(gone?.row == nil && gone?.clocks == .mark(4, deletedAt: LSN(rawValue: 77)) && gone?.rowTime ?? 0 > 1_700_000_000_000)
            #expect(try await fixture.sql("SELECT deleted_lsn FROM sluice.row_clock")[0, 0] == "0/4D")
            #expect(
                try await fixture.rows.transaction { try $0.load($1, "Item", keys: [.uuid(UUIDBytes(high: 0, low: 0))]) }.result.isEmpty)
        }
    }

    @Test func `count their changesets and mark their transactions, once each`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            let slot = "store_\(UInt32.random(in: .min ... .max))"
            _ = try await fixture.sql("SELECT pg_create_logical_replication_slot('\(slot)', 'test_decoding')")
            let before = try await fixture.rows.transaction { try $0.open($1, Origin(client: client, changeset: 1)) }
            #expect(before.result.changeset == 0 && before.result.now <= before.lsn)
            let after = try await fixture.write(client, changeset: 1) { transaction in
                try transaction.write(
                    "Store", key: .objectId(ObjectIdentifierBytes(high: 1, low: 1)),
                    .insert(Row([.objectId(ObjectIdentifierBytes(high: 1, low: 1)), .string("Bergen")])), clocks: .mark(0))
            }
            #expect(after >= before.lsn)
            let again = try await fixture.rows.transaction { try $0.open($1, Origin(client: client, changeset: 1)) }.result
            #expect(again.changeset == 1)
            // What is not on disk yet is in no slot.
            try await fixture.rows.durable()
            let log = try await fixture.sql("SELECT data FROM pg_logical_slot_get_changes('\(slot)', NULL, NULL)").column(0)
            let marks = log.filter { $0.contains("message: transactional: 1 prefix: sluice,") }
            // The first transaction only read; its mark is there, with nothing behind it.
            #expect(marks.count == 2 && marks.allSatisfy { $0.hasSuffix("content:\(client.rawValue):1:0") })
            let row = try #require(log.firstIndex { $0.contains("Bergen") })
            #expect(try #require(log.lastIndex(of: marks[1])) < row)
            _ = try await fixture.sql("SELECT pg_drop_replication_slot('\(slot)')")
        }
    }

    @Test func `of an unknown client are refused`() async throws {
        try await StoreFixture.with { fixture in
            let error = await #expect(throws: SluiceError.self) {
                try await fixture.rows.transaction { try $0.open($1, Origin(client: ClientID(rawValue: 9), changeset: 1)) }
            }
            #expect(error?.code == .badClientFile)
        }
    }

    @Test func `that break a constraint, a trigger or the text format are refused and leave nothing`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            _ = try await fixture.sql(
                """
                ALTER TABLE "Store" ADD CHECK (city <> 'Atlantis');
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE island text; BEGIN
                    IF NEW.city = 'Rungholt' THEN RAISE EXCEPTION 'it has sunk'; END IF;
                    IF NEW.city = 'Ys' THEN RAISE EXCEPTION 'it has drowned' USING ERRCODE = 'SEA01'; END IF;
                    IF NEW.city = 'Avalon' THEN RAISE EXCEPTION 'it is a tale' USING ERRCODE = 'feature_not_supported'; END IF;
                    IF NEW.city = 'Thule' THEN SELECT 'x' INTO STRICT island WHERE false; END IF;
                    IF NEW.city = 'Brasil' THEN SELECT 'x' INTO STRICT island FROM generate_series(1, 2); END IF;
                    IF NEW.city = 'Frisland' THEN ASSERT false, 'it is on old maps'; END IF;
                    IF NEW.city = 'Antillia' THEN island := (SELECT 'x' FROM generate_series(1, 2)); END IF; RETURN NEW; END $$;
                CREATE TRIGGER refuse BEFORE INSERT ON "Store" FOR EACH ROW EXECUTE FUNCTION refuse()
                """)
            for (city, reason) in [
                ("Atlantis", "violates check constraint"), ("Rungholt", "it has sunk"), ("Ys", "it has drowned"), ("a\0b", "NUL"),
                ("Avalon", "it is a tale"), ("Thule", "P0002"), ("Brasil", "P0003"), ("Frisland", "it is on old maps"),
                ("Antillia", "21000"),
            ] {
                let error = await #expect(throws: SluiceError.self) {
                    try await fixture.write(client, changeset: 1) { transaction in
                        let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: 1))
                        try transaction.write("Store", key: key, .insert(Row([key, .string(city)])), clocks: .mark(0))
                    }
                }
                // The words of PostgreSQL are for operators.
                #expect(error?.code == .writeNotAllowed && error?.cause?.description.contains(reason) == true, "\(reason)")
                #expect(error?.message.contains(reason) == false, "\(reason)")
            }
            let object = ObjectKey(type: "Store", key: .objectId(ObjectIdentifierBytes(high: 1, low: 1)))
            #expect(fixture.refusedObjects.withLock { $0 } == Array(repeating: object, count: 9))
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.row_clock").int(0, 0) == 0)
        }
    }

    @Test(arguments: [("INSERT", 0), ("UPDATE", 1), ("DELETE", 1)])
    func `that a trigger suppresses are refused, and leave nothing`(event: String, changeset: Int64) async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: 1))
            if event != "INSERT" {
                try await fixture.write(client, changeset: 1) {
                    try $0.write("Store", key: key, .insert(Row([key, .string("Bergen")])), clocks: .mark(1))
                }
            }
            _ = try await fixture.sql(
                """
                CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
                CREATE TRIGGER suppress BEFORE \(event) ON "Store" FOR EACH ROW EXECUTE FUNCTION suppress()
                """)
            let error = await #expect(throws: SluiceError.self) {
                try await fixture.write(client, changeset: 2) {
                    let write: StoredWrite =
                        switch event {
                        case "INSERT": .insert(Row([key, .string("Bergen")]))
                        case "UPDATE": .update([1: .string("Oslo")])
                        default: .delete
                        }
                    try $0.write("Store", key: key, write, clocks: .mark(2))
                }
            }
            #expect(error?.code == .writeNotAllowed && error?.message.contains("trigger may have suppressed it") == true)
            // An insert may have met another's, and is tried again; what else is refused is so for its object's sake.
            #expect(fixture.refusedObjects.withLock { $0.count } == (event == "INSERT" ? 0 : 1))
            #expect(try await fixture.sql("SELECT last_changeset FROM sluice.client").int(0, 0) == changeset)
            let clocks = Hex.encode(ObjectClocks.mark(2).encoded)
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.row_clock WHERE clocks = '\\x\(clocks)'").int(0, 0) == 0)
        }
    }

    @Test func `that a deferred constraint refuses at commit are refused too`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            _ = try await fixture.sql("ALTER TABLE \"Store\" ADD UNIQUE (city) DEFERRABLE INITIALLY DEFERRED")
            let error = await #expect(throws: SluiceError.self) {
                try await fixture.write(client, changeset: 1) { transaction in
                    for number in 1...2 {
                        let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: UInt32(number)))
                        try transaction.write("Store", key: key, .insert(Row([key, .string("same")])), clocks: .mark(0))
                    }
                }
            }
            #expect(error?.code == .writeNotAllowed)
        }
    }

    @Test(arguments: ["P0001", "SEA01", "0A000"])
    func `that a deferred trigger refuses at commit are refused too`(code: String) async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            _ = try await fixture.sql(
                """
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    RAISE EXCEPTION 'it has sunk' USING ERRCODE = '\(code)'; END $$;
                CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "Store" DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION refuse()
                """)
            let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: 1))
            let error = await #expect(throws: SluiceError.self) {
                try await fixture.write(client, changeset: 1) {
                    try $0.write("Store", key: key, .insert(Row([key, .string("Rungholt")])), clocks: .mark(0))
                }
            }
            #expect(error?.code == .writeNotAllowed && error?.cause?.description.contains("it has sunk") == true)
            #expect(error?.message.contains("sunk") == false)
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.row_clock").int(0, 0) == 0)
        }
    }

    @Test func `of two gateways that insert one key meet: the second begins again and finds the row`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            let key = Value.objectId(ObjectIdentifierBytes(high: 3, low: 3))
            let runs = Mutex(0)
            let result = try await fixture.rows.waitingTransaction { transaction, connection in
                let found = try await connection.withSession { try transaction.load($0, "Store", keys: [key]) }
                if runs.withLock({
                    $0 += 1; return $0
                }) == 1 {
                    try await fixture.write(client, changeset: 1) {
                        try $0.write("Store", key: key, .insert(Row([key, .string("theirs")])), clocks: .mark(7))
                    }
                }
                if found[key] == nil { try transaction.write("Store", key: key, .insert(Row([key, .string("ours")])), clocks: .mark(0)) }
                return found
            }.result
            #expect(runs.withLock { $0 } == 2)
            #expect(result[key]?.row?[1] == .string("theirs") && result[key]?.clocks == .mark(7))
        }
    }

    @Test func `see the clocks that belong to the row when they waited for its lock`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            let key = Value.objectId(ObjectIdentifierBytes(high: 3, low: 3))
            try await fixture.write(client, changeset: 1) {
                try $0.write("Store", key: key, .insert(Row([key, .string("0")])), clocks: .mark(0))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        for _ in 0..<15 {
                            _ = try await fixture.rows.transaction { transaction, session in
                                let found = try transaction.load(session, "Store", keys: [key])[key]
                                guard case .string(let text)? = found?.row?[1], let number = UInt8(text) else { throw CancellationError() }
                                #expect(found?.clocks == .mark(Int(number)))
                                try transaction.write(
                                    "Store", key: key, .update([1: .string(String(number + 1))]), clocks: .mark(Int(number) + 1))
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await fixture.sql("SELECT city FROM \"Store\"")[0, 0] == "45")
        }
    }

    @Test func `find a row that was made anew while they waited for the clocks of its deletion`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            let key = Value.objectId(ObjectIdentifierBytes(high: 3, low: 3))
            try await fixture.write(client, changeset: 1) {
                try $0.write("Store", key: key, .nothing, clocks: .mark(1, deletedAt: LSN(rawValue: 7)))
            }
            let (locked, signal) = AsyncStream<Void>.makeStream()
            async let theirs = {
                for await _ in locked { break }
                return try await fixture.rows.transaction { try $0.load($1, "Store", keys: [key])[key] }.result
            }()
            _ = try await fixture.rows.waitingTransaction { transaction, connection in
                let found = try await connection.withSession { try transaction.load($0, "Store", keys: [key])[key] }
                #expect(found?.row == nil && found?.clocks == .mark(1, deletedAt: LSN(rawValue: 7)))
                signal.finish()
                // They have looked for the row, which is not there.
                try await fixture.waitForBlocked("SELECT stored.%sluice.row_clock%")
                try transaction.write("Store", key: key, .insert(Row([key, .string("made anew")])), clocks: .mark(2))
            }
            let found = try await theirs
            #expect(found?.row == Row([key, .string("made anew")]) && found?.clocks == .mark(2) && found?.writer != nil)
            // What SQL deleted has clocks of an object that is there, and stays missing.
            _ = try await fixture.sql("DELETE FROM \"Store\"")
            let gone = try await fixture.rows.transaction { try $0.load($1, "Store", keys: [key])[key] }.result
            #expect(gone?.row == nil && gone?.clocks == .mark(2) && gone?.rowTime ?? 0 > 1_700_000_000_000)
        }
    }

    @Test func `go on where another property of the row does not fit`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await client(fixture)
            _ = try await fixture.sql(
                "ALTER TABLE \"Store\" ALTER city DROP NOT NULL; INSERT INTO \"Store\" VALUES ('00000000000000010000000a', NULL)")
            let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: 10))
            let found = try await fixture.rows.transaction { try $0.load($1, "Store", keys: [key]) }.result[key]
            #expect(found?.row == Row([key, .string("")]) && found?.clocks == nil)
            try await fixture.write(client, changeset: 1) {
                try $0.write("Store", key: key, .update([1: .string("mended")]), clocks: .mark(1))
            }
            #expect(try await fixture.sql("SELECT city FROM \"Store\"")[0, 0] == "mended")
        }
    }
}

@Suite struct `Refused writes` {
    @Test func `are kept with their values, block their objects, and go quiet when acknowledged`() async throws {
        try await StoreFixture.with { fixture in
            let store = WriteRejectionStore(pool: fixture.pool)
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: []).id
            let key = Value.uuid(UUIDBytes(high: 1, low: 2))
            let write = WriteRejection(
                changeset: 4, object: ObjectKey(type: "Item", key: key), code: .compensatingWrite, reason: "no\0", rule: "the view",
                values: ["name": .string("nul \0"), "made": .timestamp(Timestamp(seconds: 5)), "n": .int(.max)])
            let first = try await fixture.rows.transaction { try $0.reject($1, client: client, [write, write]) }.result
            let second = try await fixture.rows.transaction { try $0.reject($1, client: client, [write]) }.result
            #expect(second > first)

            let open = try await store.open(client: client)
            #expect(open.map(\.compensation) == [first, second] && open.map(\.writes.count) == [2, 1])
            let kept = open[0].writes[0]
            #expect(kept.object == write.object && kept.code == .compensatingWrite && kept.changeset == 4 && kept.reason == "no␀")
            #expect(kept.values == ["name": .string("nul ␀"), "made": .timestamp(Timestamp(seconds: 5)), "n": .int(.max)])

            // Some at a time, none of them cut.
            #expect(try await store.open(client: client, bytes: 1).map(\.writes.count) == [2])
            #expect(try await store.open(client: client, after: first).map(\.compensation) == [second])
            #expect(try await store.open(client: client, after: second).isEmpty)

            func blocked(_ acknowledged: UInt64) async throws -> Set<ObjectKey> {
                let next = Origin(client: client, changeset: 5)
                return try await fixture.rows.transaction { try $0.open($1, next, acknowledged: acknowledged).rejected }.result
            }
            #expect(try await blocked(0) == [write.object])
            #expect(try await blocked(first) == [write.object])
            #expect(try await blocked(second) == [])
            try await store.acknowledge(client: client, upTo: first)
            #expect(try await store.open(client: client).map(\.compensation) == [second])
            try await store.acknowledge(client: client, upTo: second)
            #expect(try await blocked(0) == [])
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.rejected_write").int(0, 0) == 3)
            // Operators are still told, of this user's and this object's alone.
            let told = try await store.last(2, of: write.object, user: "ann")
            #expect(
                told.map(\.rule) == ["the view", "the view"] && told.allSatisfy { $0.client == client && $0.reason == "no␀" }, "\(told)")
            #expect(told.allSatisfy { $0.code == .compensatingWrite && $0.at.hasSuffix("Z") })
            #expect(try await store.last(5, of: write.object, user: "ann").count == 3)
            #expect(try await store.last(5, of: write.object, user: "bob").isEmpty)
            #expect(try await store.last(5, of: ObjectKey(type: "Other", key: key), user: "ann").isEmpty)
        }
    }

    @Test func `go when there are too many, the oldest first, once they are acknowledged`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
            _ = try await fixture.sql(
                """
                INSERT INTO sluice.rejected_write (compensation, client, changeset, type, key, key_value, code, reason, values, acknowledged)
                SELECT g, \(client.rawValue), g, 'Item', 'k' || g, to_jsonb('k' || g), 231, 'no', '{}', g <> 3 FROM generate_series(1, 10020) g
                """)
            let store = WriteRejectionStore(pool: fixture.pool)
            #expect(try await store.prune(keeping: 11) == RejectionPruning.batch)
            #expect(try await store.prune(keeping: 11) == 8)
            #expect(try await store.prune(keeping: 11) == 0)
            let left = try await fixture.sql("SELECT count(*), min(id), max(id) FROM sluice.rejected_write")
            #expect(left.int(0, 0) == 12 && left.int(0, 1) == 3 && left.int(0, 2) == 10_020)
        }
    }

    @Test func `of objects that are only sent go when the dead-letter topic has them`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                INSERT INTO sluice.ingest_rejected (type, source, code, reason, object, published)
                SELECT 'Reading', 'direct', 801, 'no', '{}', g <> 3 FROM generate_series(1, 20) g
                """)
            let store = DeadLetterStore(pool: fixture.pool)
            #expect(try await store.prune(keeping: 11, untold: false) == 8)
            #expect(try await store.list(DeadLetterStore.Filter(), limit: 100).map(\.id) == [3] + Array(10...20))
            // Where there is no topic, nothing waits for it.
            #expect(try await store.prune(keeping: 5, untold: true) == 7)
            #expect(try await store.list(DeadLetterStore.Filter(), limit: 100).map(\.id) == Array(16...20))
        }
    }
}
