import CSluicePlugin
import SluicePluginKit
import Testing

/// A plugin with a key of every kind.
private final class Configured: SubscriptionRules, WriteRules, UserChangeRules {
    static let name = "Configured"
    static let version = "1"
    static let configKeys: [String: ConfigKey]? = [
        "on": ConfigKey(.bool), "count": ConfigKey(.int(min: 1, max: 9), required: true, help: "How many."),
        "any_count": ConfigKey(.int()), "rate": ConfigKey(.number(min: 0.5)), "share": ConfigKey(.number(max: 1)),
        "name": ConfigKey(.text), "way": ConfigKey(.choice(["up", "down"])), "list": ConfigKey(.list(of: .text)),
        "map": ConfigKey(.map(of: .int(max: 3))), "object": ConfigKey(.object(["inner": ConfigKey(.bool, required: true)])),
        "free": ConfigKey(.any),
    ]

    private let log: PluginLog
    private var users: [String] = []

    init(log: PluginLog) {
        self.log = log
        log.debug("d")
        log.info("i")
        log.warning("w")
        log.error("e")
    }

    func checkSubscription(user: PluginUser, queries: [PluginQuery]) throws -> [PluginQuery] {
        queries.map { PluginQuery(type: $0.type, query: "owner == \"\(user.id)\"") }
    }

    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
        writes.map { _ in .deny(reason: "no", rule: "clause 2", fields: ["a", "b"]) }
    }

    func userChanged(_ user: PluginUser) throws {
        users.append(user.id)
        log.info("changed: \(users.joined(separator: ","))")
        if user.id == "eve" { throw PluginDenial("not eve") }
    }
}

@Suite struct `A key of a plugin's configuration` {
    private static func text(_ text: sluice_text) -> String {
        String(decoding: UnsafeRawBufferPointer(start: text.data, count: text.length), as: UTF8.self)
    }

    @Test func `is told to the gateway with its kind, its bounds and its help`() throws {
        let keys = try #require(Configured.configKeys)
        let expected: [String: String] = [
            "on": #"{"type":"bool"}"#, "count": #"{"type":"int","min":1,"max":9,"required":true,"help":"How many."}"#,
            "any_count": #"{"type":"int"}"#, "rate": #"{"type":"number","min":0.5}"#, "share": #"{"type":"number","max":1.0}"#,
            "name": #"{"type":"text"}"#, "way": #"{"type":"text","one_of":["up","down"]}"#,
            "list": #"{"type":"list","of":{"type":"text"}}"#,
            "map": #"{"type":"map","of":{"type":"int","max":3}}"#,
            "object": #"{"type":"object","keys":{"inner":{"type":"bool","required":true}}}"#, "free": #"{"type":"any"}"#,
        ]
        let told = try PluginValue(parsing: Self.text(Hosted(Configured.self).table.config_schema))
        #expect(told.members?.map(\.key) == keys.keys.sorted())
        for (name, json) in expected { #expect(told[name] == (try PluginValue(parsing: json)), "\(name): \(told[name]?.json ?? "")") }
    }
}

@Suite struct `A plugin in a test` {
    @Test func `is asked as by a gateway`() throws {
        let plugin = try TestedPlugin(Configured.self)
        #expect(plugin.log == ["debug: d", "info: i", "warning: w", "error: e"])
        let queries = try plugin.checkSubscription(PluginUser(id: "ann"), queries: [PluginQuery(type: "T", query: "TRUEPREDICATE")])
        #expect(queries == [PluginQuery(type: "T", query: #"owner == "ann""#)])
        let write = PluginWrite(type: "T", operation: "update", before: [:], after: ["a": 1])
        #expect(
            try plugin.checkWrites(PluginUser(id: "ann"), [write]).verdicts == [.deny(reason: "no", rule: "clause 2", fields: ["a", "b"])])
        try plugin.userChanged(PluginUser(id: "ann"))
        let denial = #expect(throws: PluginDenial.self) { try plugin.userChanged(PluginUser(id: "eve")) }
        #expect(denial?.reason == "not eve" && plugin.log.last == "info: changed: ann,eve")
        // It has no such hooks.
        #expect(throws: PluginError.self) { try plugin.openSession(PluginUser(id: "ann"), types: ["T"]) }
        #expect(throws: PluginError.self) { try plugin.ingest(type: "T", [[:]]) }
    }
}
