import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import TestSupport
import Testing

private func reason(_ verdict: WriteVerdict) -> String? { if case .deny(let reason, _, _) = verdict { reason } else { nil } }
private func rule(_ verdict: WriteVerdict) -> String? { if case .deny(_, let rule, _) = verdict { rule } else { nil } }

private func failure(_ body: () async throws -> Void) async -> SluiceError? {
    do { try await body() } catch { return error as? SluiceError }
    return nil
}

@Suite(.timeLimit(.minutes(1))) struct `Rate limits` {
    private static let config = """
        { "types": { "Patient": { "writes_per_minute": 1, "burst": 3, "inserts_per_day": 2 } }, "exempt": "isImporter" }
        """

    @Test func `let a user write so much of a type at once, and no more, whoever else writes`() async throws {
        try await Shipped.with("RateLimits", Self.config) { chain in
            let ann = Shipped.user("ann")
            let writes = (0..<5).map { Shipped.update("\($0)") }
            let verdicts = await chain.checkWrites(user: ann, writes: writes, schema: Shipped.schema)
            #expect(verdicts.map { reason($0) == nil } == [true, true, true, false, false])
            #expect(reason(verdicts[3]) == "more than 1 writes of Patient a minute")
            #expect(rule(verdicts[3]) == "plugin RateLimits, writes_per_minute of Patient")
            let others = await chain.checkWrites(user: Shipped.user("bob"), writes: [writes[0]], schema: Shipped.schema)
            #expect(others == [.allow])
            #expect(await chain.checkWrites(user: ann, writes: [Shipped.update("v", "Visit")], schema: Shipped.schema) == [.allow])
        }
    }

    @Test func `let a user write again as time passes, no more at once than the burst`() async throws {
        // One a millisecond.
        let config = #"{ "types": { "Patient": { "writes_per_minute": 60000, "burst": 2 } } }"#
        try await Shipped.with("RateLimits", config) { chain in
            let writes = (0..<40).map { Shipped.update("\($0)") }
            func allowed() async -> Int {
                await chain.checkWrites(user: Shipped.user("ann"), writes: writes, schema: Shipped.schema).count { $0 == .allow }
            }
            #expect(await allowed() == 2)
            // Whatever the time since the last call, a call has one time for all of its writes.
            for _ in 0..<20 {
                let isRefilled = try await eventually(every: .milliseconds(1)) {
                    let count = await allowed()
                    try #require(count <= 2)
                    return count == 2
                }
                #expect(isRefilled)
            }
        }
    }

    @Test func `forget those who have written nothing for the longest time, beyond ten thousand`() async throws {
        let config = #"{ "types": { "Patient": { "inserts_per_day": 1 }, "Visit": { "inserts_per_day": 1 } } }"#
        try await Shipped.with("RateLimits", config) { chain in
            func insert(_ user: String) async -> Bool {
                await chain.checkWrites(user: Shipped.user(user), writes: [Shipped.insert("a")], schema: Shipped.schema) == [.allow]
            }
            #expect(await insert("ann"))
            #expect(await !insert("ann"))
            // Each user counts once for each of two classes.
            func fill(_ range: Range<Int>) async -> Int {
                var allowed = 0
                let writes = [Shipped.insert("a"), Shipped.insert("a", "Visit")]
                for number in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
                    let verdicts = await chain.checkWrites(user: Shipped.user("u\(number)"), writes: writes, schema: Shipped.schema)
                    allowed += verdicts.count { $0 == .allow }
                }
                return allowed
            }
            #expect(await fill(0..<10_000) == 10_000)
            // There are ten thousand after her, and she is still known.
            #expect(await !insert("ann"))
            // She has written just now, and so is among those that are kept when as many more come.
            #expect(await fill(10_000..<30_000) == 20_000)
            #expect(await insert("ann"))
        }
    }

    @Test func `bound the new objects of a day`() async throws {
        try await Shipped.with("RateLimits", #"{ "types": { "Patient": { "inserts_per_day": 2 } } }"#) { chain in
            let writes = [Shipped.insert("a"), Shipped.insert("b"), Shipped.insert("c"), Shipped.update("a")]
            let verdicts = await chain.checkWrites(user: Shipped.user("ann"), writes: writes, schema: Shipped.schema)
            #expect(verdicts.map { reason($0) == nil } == [true, true, false, true])
            #expect(reason(verdicts[2]) == "2 new objects of Patient within a day are enough")
        }
    }

    @Test func `ask about writes of those who are bounded only`() async throws {
        try await Shipped.with("RateLimits", Self.config) { chain in
            let plan = try await chain.openSession(user: Shipped.user("ann"), types: Shipped.types)
            #expect(plan?["Patient"].checkWrite == true && plan?["Visit"].checkWrite == false)
            let free = try await chain.openSession(user: Shipped.user("eve", ["isImporter": true]), types: Shipped.types)
            #expect(free?["Patient"].checkWrite == false)
        }
    }

    @Test func `are refused when they are misspelt`() async throws {
        let error = await failure {
            try await Shipped.with("RateLimits", #"{ "types": { "Patient": { "writes_per_minutes": 1 } } }"#) { _ in }
        }
        #expect(error?.code == .configUnknownKey && error?.fix == "Did you mean 'writes_per_minute'?")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Field redaction` {
    private static let config = #"{ "hide": { "Patient": ["ssn"] }, "except": "isDoctor" }"#

    @Test func `hides fields from reading and writing, save from those who may see them`() async throws {
        try await Shipped.with("FieldRedaction", Self.config) { chain in
            let plan = try #require(try await chain.openSession(user: Shipped.user("ann"), types: Shipped.types))
            #expect(plan["Patient"].fields.readable == ["_id", "name"] && plan["Patient"].fields.writable == ["_id", "name"])
            #expect(plan["Visit"].fields.readable == nil)
            let doctor = try await chain.openSession(user: Shipped.user("eve", ["isDoctor": true]), types: Shipped.types)
            #expect(doctor?["Patient"].fields.readable == nil)
        }
    }

    @Test(arguments: [(#"["snn"]"#, "there is no field \"snn\""), (#"["_id"]"#, "the primary key cannot be hidden")])
    func `refuses what would hide nothing`(fields: String, words: String) async throws {
        let error = await failure { try await Shipped.with("FieldRedaction", #"{ "hide": { "Patient": \#(fields) } }"#) { _ in } }
        #expect(error?.code == .pluginRefused && error?.message.contains(words) == true, "\(String(describing: error))")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The audit trail` {
    @Test func `keeps a record of each write, in the order of each object`() async throws {
        let records = Records()
        try await Shipped.with("AuditTrail", #"{ "types": ["Patient"] }"#, records: records) { chain in
            let plan = try await chain.openSession(user: Shipped.user("ann"), types: Shipped.types)
            #expect(plan?["Patient"].checkWrite == true && plan?["Visit"].checkWrite == false)
            let writes = [Shipped.insert("a"), Shipped.update("a"), Shipped.insert("v", "Visit")]
            let verdicts = await chain.checkWrites(user: Shipped.user("ann"), writes: writes, schema: Shipped.schema)
            #expect(verdicts == [.allow, .allow, .allow])
        }
        #expect(records.kept.map(\.stream) == ["audit", "audit"])
        #expect(Set(records.kept.map(\.key)) == [#"Patient "a""#])
        #expect(records.kept.map { $0.record["operation"]?.string } == ["insert", "update"])
        #expect(records.kept[0].record["user"]?.string == "ann" && records.kept[0].record["after"]?["_id"]?.string == "a")
    }

    @Test func `lets no write through whose record is not kept`() async throws {
        let records = Records()
        records.breakDown()
        let verdicts = try await Shipped.with("AuditTrail", #"{ "images": false }"#, records: records) { chain in
            await chain.checkWrites(user: Shipped.user("ann"), writes: [Shipped.insert("a")], schema: Shipped.schema)
        }
        // For operators: users are not told what broke.
        guard case .undecided(let error)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
        #expect(error.code == .logUnreachable && error.message.contains("the brokers are away"), "\(error)")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A freeze` {
    @Test func `takes the writing of the types that are listed, from all but the users excepted`() async throws {
        try await Shipped.with("FreezeC", #"{ "types": ["Visit", "Patient"], "except_users": ["eve"] }"#) { chain in
            let plan = try #require(try await chain.openSession(user: Shipped.user("ann"), types: Shipped.types + ["Other"]))
            #expect(plan["Patient"].write == "FALSEPREDICATE" && !plan["Patient"].insert && plan["Patient"].read == "TRUEPREDICATE")
            #expect(plan["Visit"].role == "frozen" && plan["Other"].write == "TRUEPREDICATE")
            let eve = try await chain.openSession(user: Shipped.user("eve"), types: Shipped.types)
            #expect(eve?["Patient"].role == "not frozen" && eve?["Patient"].insert == true)
        }
    }

    @Test func `takes all writing when no type is listed`() async throws {
        try await Shipped.with("FreezeC", "{}") { chain in
            let plan = try await chain.openSession(user: Shipped.user("types\":[\"x", ["types": ["Patient"]]), types: Shipped.types)
            #expect(plan?["Patient"].role == "frozen" && plan?["Visit"].role == "frozen")
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A freeze of what is closed` {
    private static let config = #"{ "types": ["Visit"], "except_users": ["eve"], "closed_field": "closed" }"#

    @Test func `keeps each object as it was when it was closed`() async throws {
        try await Shipped.with("FreezeC", Self.config) { chain in
            let plan = try await chain.openSession(user: Shipped.user("ann"), types: Shipped.types)
            #expect(plan?["Visit"].checkWrite == true && plan?["Visit"].delete == true && plan?["Patient"].checkWrite == false)
            let writes = [
                Shipped.visit(nil, true), Shipped.visit(false, true), Shipped.visit(true, true), Shipped.visit(true, false),
                Shipped.visit(true, nil), Shipped.visit(false, nil), Shipped.update("p"),
            ]
            let verdicts = await chain.checkWrites(user: Shipped.user("ann"), writes: writes, schema: Shipped.schema)
            #expect(verdicts.map { $0 == .allow } == [true, true, false, false, false, true, true])
            #expect(reason(verdicts[2]) == "It is closed, and stays as it is." && rule(verdicts[2]) == "plugin FreezeC, closed_field")
            let excepted = await chain.checkWrites(user: Shipped.user("eve"), writes: writes, schema: Shipped.schema)
            #expect(excepted.allSatisfy { $0 == .allow })
        }
    }

    @Test(arguments: ["clsoed", "name", "osed"])
    func `refuses a field that would close nothing`(field: String) async throws {
        let error = await failure { try await Shipped.with("FreezeC", #"{ "closed_field": "\#(field)" }"#) { _ in } }
        #expect(error?.code == .pluginRefused && error?.message.contains("closed_field") == true, "\(String(describing: error))")
    }
}

@Suite(.timeLimit(.minutes(2))) struct `The plugins that ship with the gateway` {
    private static let configs: [(String, JSON)] = [
        ("AppServicesRules", .null), ("WeatherIngest", .null), ("DenyAllC", ["allow": ["Patient"]]),
        ("RateLimits", ["types": ["Patient": ["writes_per_minute": 10]]]), ("FieldRedaction", ["hide": ["Patient": ["ssn"]]]),
        ("AuditTrail", .null), ("FreezeC", ["types": ["Visit"], "closed_field": "closed"]),
    ]

    @Test(arguments: configs)
    func `keep to the interface`(name: String, config: JSON) async throws {
        let spec = PluginSpec(path: "\(Shipped.folder)/lib\(name).so", config: config, deadline: 30_000_000_000)
        let app = AppDescription.json(appID: "test", directory: [:], schema: Shipped.schema, queryableFields: QueryableFields())
        let (info, outcomes) = try await PluginConformance.check(
            spec, app: app, schema: Shipped.schema, hostExecutable: "\(Shipped.folder)/sluice-plugin-host", logger: .init(label: "test"))
        #expect(info.name == name)
        #expect(outcomes.filter { $0.failure != nil } == [])
    }
}
