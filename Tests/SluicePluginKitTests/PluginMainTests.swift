import CSluicePlugin
import SluicePluginKit
import Testing

/// Takes part in every hook.
private final class Complete: SessionRules, SubscriptionRules, WriteRules, IngestRules, UserChangeRules {
    static let name = "Complete"
    static let version = "2.0"
    private var users: [PluginUser] = []

    init(log: PluginLog) { log.warning("made") }

    func configure(_ app: AppConfiguration) throws -> [String] {
        if app.config["refuse"]?.bool == true { throw PluginDenial("not with this configuration") }
        return [
            "\(app.appID) \(app.directory["a/b.json"] ?? "") \(app.schema["T"]?.properties["p"]?.type ?? "") \(app.isQueryable("p", of: "T"))"
        ]
    }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        if types.isEmpty { throw MissingTypes() }
        return Dictionary(
            uniqueKeysWithValues: types.map {
                (
                    $0,
                    TypeRules(
                        read: "a == \"\(user.id)\"", write: "FALSEPREDICATE", insert: false, delete: true, readableFields: ["b", "a"],
                        role: "r")
                )
            })
    }

    func checkSubscription(user: PluginUser, queries: [PluginQuery]) throws -> [PluginQuery] { user.id == "ann" ? [] : queries }

    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
        writes.map { write in
            switch write.operation {
            case "insert": .amend(["by": .string(user.id)])
            case "delete": .deny(reason: "never", rule: "clause 1", fields: ["by"])
            default: write.before == nil ? .deny(reason: "no image") : .allow
            }
        }
    }

    func ingest(type: String, objects: [PluginRow]) throws -> [IngestVerdict] {
        if type == "Plain" { return objects.map { _ in .accept } }
        return [
            .accept, .amend(["a": 0]), .transform(["a": 1]), .route(type: "U", object: ["b": 2]),
            .split([.init(type: "U", object: ["c": 3])]),
            .drop(reason: "old"), .reject(reason: "bad"),
        ]
    }

    func userChanged(_ user: PluginUser) throws { users.append(user) }
}

/// Shows what it reads.
private final class Showing: RecordingWriteRules {
    static let name = "Showing"
    static let version = "1"
    init(log: PluginLog) {}
    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func records(user: PluginUser, writes: [PluginWrite], verdicts: [WriteVerdict]) throws -> [PluginRecord] {
        writes.map { PluginRecord(stream: "seen", record: $0.before?.value ?? .null) }
    }
}

private struct MissingTypes: Error, CustomStringConvertible { let description = "no types" }

/// Has no hook at all.
private final class Bare: RulePlugin {
    static let name = "Bare"
    static let version = "1"
    init(log: PluginLog) {}
}

/// Asks whatever it is asked, and counts how often.
private final class Asking: SessionRules, AsksGateway {
    static let name = "Asking"
    static let version = "1"
    private var gateway: PluginGateway?
    init(log: PluginLog) {}
    func connect(to gateway: PluginGateway) { self.gateway = gateway }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        guard let gateway else { return [:] }
        gateway.count("sessions")
        let boss = try gateway.customData(of: user.id)?["boss"]?.string ?? "nobody"
        let read = try gateway.canonical("owner  ==  \"\(boss)\"", on: types[0])
        return [types[0]: TypeRules(read: read, write: "FALSEPREDICATE", insert: false, delete: false, role: boss)]
    }
}

final class Collected { var text = "" }

private func collect(context: UnsafeMutableRawPointer?, piece: sluice_text) {
    let collected = Unmanaged<Collected>.fromOpaque(context!).takeUnretainedValue()
    collected.text += String(decoding: UnsafeRawBufferPointer(start: piece.data, count: piece.length), as: UTF8.self)
}

private func takeLog(context: UnsafeMutableRawPointer?, level: sluice_log_level, message: sluice_text) {
    collect(context: context, piece: message)
}

/// A plugin as a host sees it: a table of functions.
final class Hosted {
    private(set) var table = sluice_plugin()
    private(set) var status = SLUICE_OK
    private(set) var reason = ""
    let log = Collected()
    private let host = UnsafeMutablePointer<sluice_host>.allocate(capacity: 1)

    convenience init(_ type: (some RulePlugin).Type, major: UInt32 = 1, size: Int = MemoryLayout<sluice_plugin>.size) {
        self.init(major: major, size: size) { PluginMain.register(type, $0, $1, $2) }
    }

    init(
        major: UInt32 = 1, size: Int = MemoryLayout<sluice_plugin>.size,
        entry: (UnsafePointer<sluice_host>, UnsafeMutablePointer<sluice_plugin>, UnsafePointer<sluice_sink>) -> sluice_status
    ) {
        host.initialize(
            to: sluice_host(
                size: UInt32(MemoryLayout<sluice_host>.size), abi_major: major, abi_minor: 0, reserved: 0,
                context: Unmanaged.passRetained(log).toOpaque(), log: takeLog, count: { _, _, _ in SLUICE_FAILED },
                custom_data: { _, _, answer in
                    answer.pointee.write(answer.pointee.context, Hosted.text(#"{"boss":"eve"}"#))
                    return SLUICE_OK
                },
                parse_predicate: { _, _, _, answer in
                    answer.pointee.write(answer.pointee.context, Hosted.text("no such property"))
                    return SLUICE_DENY
                }))
        withUnsafeMutableBytes(of: &table) { bytes in
            for index in size..<bytes.count { bytes[index] = 0x55 }
        }
        table.size = UInt32(size)
        table.abi_major = major
        let answer = Collected()
        var sink = sluice_sink(context: Unmanaged.passUnretained(answer).toOpaque(), write: collect)
        status = entry(host, &table, &sink)
        reason = answer.text
    }

    private static func text(_ text: StaticString) -> sluice_text {
        sluice_text(data: UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self), length: text.utf8CodeUnitCount)
    }

    func call(
        _ hook: (@convention(c) (UnsafeMutableRawPointer?, sluice_text, UnsafePointer<sluice_sink>) -> sluice_status)?, _ input: String
    ) throws -> (status: sluice_status, answer: String) {
        let hook = try #require(hook)
        let answer = Collected()
        var sink = sluice_sink(context: Unmanaged.passUnretained(answer).toOpaque(), write: collect)
        let status = Array(input.utf8).withUnsafeBytes { bytes in
            hook(table.state, sluice_text(data: bytes.assumingMemoryBound(to: CChar.self).baseAddress, length: bytes.count), &sink)
        }
        return (status, withExtendedLifetime(answer) { answer.text })
    }

    func call(
        _ hook: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<sluice_writes>, UnsafePointer<sluice_sink>) -> sluice_status)?,
        _ rows: TestedRows, by user: PluginUser? = nil
    ) throws -> (status: sluice_status, answer: String) {
        let hook = try #require(hook)
        let answer = Collected()
        var sink = sluice_sink(context: Unmanaged.passUnretained(answer).toOpaque(), write: collect)
        let status = rows.lend(user) { hook(table.state, $0, &sink) }
        return (status, withExtendedLifetime(answer) { answer.text })
    }
}

@Suite struct `A plugin in Swift` {
    @Test func `asks the gateway, and has what it asked wrongly as an error`() throws {
        let hosted = Hosted(Asking.self)
        let answer = try hosted.call(hosted.table.open_session, #"{\#(ann),"types":["Task"]}"#)
        #expect(answer == (SLUICE_DENY, "no such property"))
    }

    @Test func `asks the test that it runs in`() throws {
        let plugin = try TestedPlugin(Asking.self, users: ["ann": ["boss": "eve"]])
        let plan = try plugin.openSession(PluginUser(id: "ann"), types: ["Task"])
        #expect(plan["Task"]?.role == "eve" && plan["Task"]?.read == "owner  ==  \"eve\"")
        #expect(plugin.counts == ["sessions": 1])
    }

    private let ann = #""user":{"id":"ann","type":"normal","data":{},"custom_data":{},"identities":[]}"#
    private let bob = #""user":{"id":"bob","type":"normal","data":{},"custom_data":{},"identities":[]}"#

    @Test func `fills the table with the hooks that its type has`() {
        let complete = Hosted(Complete.self)
        #expect(complete.status == SLUICE_OK)
        #expect(complete.table.abi_major == 1)
        #expect(complete.table.open_session != nil && complete.table.user_changed != nil && complete.table.ingest != nil)
        #expect(complete.log.text == "made")
        let bare = Hosted(Bare.self)
        #expect(bare.table.configure != nil)
        #expect(bare.table.open_session == nil && bare.table.check_subscription == nil && bare.table.check_write == nil)
        #expect(bare.table.ingest == nil && bare.table.user_changed == nil)
    }

    /// This program has the kit's entry, as every plugin does, and does not define the type.
    @Test func `that does not say which type it is is told the line that it needs`() {
        let hosted = Hosted { sluice_plugin_entry($0, $1, $2) }
        #expect(hosted.status == SLUICE_FAILED && hosted.table.state == nil)
        #expect(hosted.reason.contains("@c func sluice_plugin_type() -> PluginExport"))
    }

    @Test func `refuses a host of another version and says which it was built for`() {
        let hosted = Hosted(Complete.self, major: 2)
        #expect(hosted.status == SLUICE_FAILED)
        #expect(hosted.table.abi_major == 1)
        #expect(hosted.reason.contains("built for version 1"))
    }

    @Test func `is configured`() throws {
        let hosted = Hosted(Complete.self)
        let app = #"""
            {"app_id":"app","directory":{"a/b.json":"text"},"config":null,
             "schema":{"T":{"kind":"top_level","primary_key":"_id","properties":{"p":{"type":"int","optional":true,"collection":"none"}}}},
             "queryable_fields":{"global":[],"types":{"T":["p"]},"indexed":null}}
            """#
        #expect(try hosted.call(hosted.table.configure, app) == (SLUICE_OK, #"{"warnings":["app text int true"]}"#))
        let refused = try hosted.call(hosted.table.configure, #"{"app_id":"app","config":{"refuse":true}}"#)
        #expect(refused == (SLUICE_DENY, "not with this configuration"))
    }

    @Test func `answers openSession`() throws {
        let hosted = Hosted(Complete.self)
        let answer = try hosted.call(hosted.table.open_session, #"{\#(ann),"types":["T"]}"#)
        #expect(answer.status == SLUICE_OK)
        let expected =
            #"{"types":{"T":{"read":"a == \"ann\"","write":"FALSEPREDICATE","insert":false,"delete":true,"readable_fields":["a","b"],"writable_fields":null,"role":"r","check_write":false}}}"#
        #expect(answer.answer == expected)
    }

    @Test func `an error other than a denial is a failure with its text`() throws {
        let hosted = Hosted(Complete.self)
        #expect(try hosted.call(hosted.table.open_session, #"{\#(ann),"types":[]}"#) == (SLUICE_FAILED, "no types"))
        #expect(try hosted.call(hosted.table.open_session, "{").status == SLUICE_FAILED)
        #expect(try hosted.call(hosted.table.open_session, "{}").answer.contains("\"user\""))
    }

    @Test func `answers checkSubscription`() throws {
        let hosted = Hosted(Complete.self)
        let queries = #""queries":[{"type":"T","query":"a > 1"}]"#
        #expect(try hosted.call(hosted.table.check_subscription, "{\(ann),\(queries)}") == (SLUICE_OK, ""))
        #expect(try hosted.call(hosted.table.check_subscription, "{\(bob),\(queries)}") == (SLUICE_OK, "{\(queries)}"))
    }

    @Test func `answers checkWrites, with what decided`() throws {
        let hosted = Hosted(Complete.self)
        let writes = ["insert", "update", "delete"].map { PluginWrite(type: "T", operation: $0, before: nil, after: [:]) }
        let answer = try hosted.call(hosted.table.check_write, TestedRows(writes, schema: [:]), by: PluginUser(id: "ann"))
        #expect(
            answer.answer
                == #"{"writes":[{"verdict":"amend","set":{"by":"ann"}},{"verdict":"deny","reason":"no image"},{"verdict":"deny","reason":"never","rule":"clause 1","fields":["by"]}]}"#
        )
    }

    @Test func `answers checkWrites in one word when it allows all`() throws {
        let hosted = Hosted(Complete.self)
        let write = PluginWrite(type: "T", operation: "update", before: ["a": 1], after: ["a": 2])
        let answer = try hosted.call(hosted.table.check_write, TestedRows([write, write], schema: [:]), by: PluginUser(id: "ann"))
        #expect(answer == (SLUICE_OK, #"{"writes":"allow"}"#))
    }

    @Test func `reads the writes of a test as a gateway's, whatever they are written as`() throws {
        let before: PluginRow = [
            "_id": ["$oid": "6650F0C2A94E1D0012345678"], "at": ["$date": 1_500], "late": ["$date": "2026-11-23T02:00:00.5+02:00"],
            "early": ["$date": "1969-12-31T23:59:59.25Z"], "n": ["$numberLong": "7"], "x": ["$numberDouble": "NaN"],
            "price": ["$numberDecimal": "12.50"], "tag": ["$uuid": "01234567-89AB-CDEF-0123-456789ABCDEF"],
            "bytes": ["$binary": ["base64": "AQL/", "subType": "00"]], "to": ["$ref": "Store", "$id": 4],
            "list": [1, .null, ["b": 2, "a": 1]],
            "odd": ["$oid": "x"],
        ]
        let seen = try TestedPlugin(Showing.self).checkWrites(
            PluginUser(id: "ann"), [PluginWrite(type: "T", operation: "delete", before: before, after: nil)])
        let expected: PluginValue = [
            "_id": ["$oid": "6650f0c2a94e1d0012345678"], "at": ["$date": "1970-01-01T00:00:01.500Z"],
            "bytes": ["$binary": ["base64": "AQL/", "subType": "00"]], "early": ["$date": "1969-12-31T23:59:59.250Z"],
            "late": ["$date": "2026-11-23T00:00:00.500Z"], "list": [1, .null, ["a": 1, "b": 2]], "n": 7, "odd": ["$oid": "x"],
            "price": ["$numberDecimal": "12.50"], "tag": ["$uuid": "01234567-89ab-cdef-0123-456789abcdef"],
            "to": ["$ref": "Store", "$id": 4], "x": ["$numberDouble": "NaN"],
        ]
        #expect(seen.records.map(\.record) == [expected])
    }

    @Test func `answers ingest`() throws {
        let hosted = Hosted(Complete.self)
        let writes = (0..<7).map { _ in PluginWrite(type: "T", operation: "insert", before: nil, after: ["z": 1]) }
        let answer = try hosted.call(hosted.table.ingest, TestedRows(writes, of: "T", schema: [:]))
        #expect(
            answer.answer
                == #"{"objects":[{"verdict":"accept"},{"verdict":"accept","set":{"a":0}},{"verdict":"accept","object":{"a":1}},{"verdict":"route","type":"U","object":{"b":2}},{"verdict":"split","objects":[{"type":"U","object":{"c":3}}]},{"verdict":"drop","reason":"old"},{"verdict":"reject","reason":"bad"}]}"#
        )
        let plain = try hosted.call(hosted.table.ingest, TestedRows([], of: "Plain", schema: [:]))
        #expect(plain == (SLUICE_OK, #"{"objects":"accept"}"#))
    }

    @Test func `answers ingest in a test as in a gateway`() throws {
        let plugin = try TestedPlugin(Complete.self, app: AppConfiguration(appID: "shop"))
        let objects: [PluginRow] = [[:], ["z": 1], [:], [:], [:], [:], [:]]
        #expect(
            try plugin.ingest(type: "T", objects) == [
                .accept, .amend(["a": 0]), .transform(["a": 1]), .route(type: "U", object: ["b": 2]),
                .split([.init(type: "U", object: ["c": 3])]), .drop(reason: "old"), .reject(reason: "bad"),
            ])
        #expect(try plugin.ingest(type: "Plain", objects) == objects.map { _ in .accept })
        #expect(try plugin.ingest(type: "Plain", []).isEmpty)
    }

    @Test func `hears of changed users`() throws {
        let hosted = Hosted(Complete.self)
        #expect(try hosted.call(hosted.table.user_changed, "{\(ann)}") == (SLUICE_OK, ""))
    }
}
