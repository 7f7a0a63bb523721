import SluiceCore
import SluicePostgres
import SluiceTools
import Testing

/// The judgement of a server by `sluice check`: facts in, findings out.
struct PostgresFindingsTests {
    /// A server that a gateway can use without a finding of more than a note.
    static func fit(_ change: (inout ServerFacts) -> Void = { _ in }) -> ServerFacts {
        var facts = ServerFacts()
        facts.version = 150_018
        facts.settings = [
            "wal_level": "logical", "track_commit_timestamp": "on", "max_replication_slots": "10", "max_wal_senders": "10",
            "max_slot_wal_keep_size": "10240", "max_connections": "200", "superuser_reserved_connections": "3", "fsync": "on",
            "full_page_writes": "on", "synchronous_commit": "on",
        ]
        facts.database = "app"
        facts.encoding = "UTF8"
        facts.freeConnections = 190
        facts.role.name = "sluice"
        facts.role.mayReplicate = true
        facts.isEncrypted = true
        facts.slot = slot()
        change(&facts)
        return facts
    }

    static func slot(_ change: (inout SlotState) -> Void = { _ in }) -> SlotState {
        var state = SlotState(
            name: "sluice_app", isActive: true, restart: LSN(rawValue: 1), confirmed: LSN(rawValue: 1), bytesKept: 1 << 20,
            bytesLeft: 1 << 30,
            status: "reserved")
        change(&state)
        return state
    }

    private static func findings(_ facts: ServerFacts, skew: Int64 = 0, error: Int64 = 1) -> [CheckFinding] {
        PostgresFindings(facts, clockSkew: skew, clockError: error, slot: "sluice_app", directory: "my app").findings
    }

    /// The findings as `severity subject`, without notes.
    private static func words(_ facts: ServerFacts, skew: Int64 = 0, error: Int64 = 1) -> [String] {
        findings(facts, skew: skew, error: error).filter { $0.severity != .note }.map { "\($0.severity.rawValue) \($0.subject)" }
    }

    @Test func `a server that fits has one note, about the gateway that reads the slot`() {
        let findings = Self.findings(Self.fit())
        #expect(findings.map(\.severity) == [.note])
        #expect(findings.first?.message == "A gateway reads the replication slot sluice_app. It retains 1 MiB of WAL.")
    }

    static let cases: [(change: @Sendable (inout ServerFacts) -> Void, words: [String])] = [
        ({ $0.version = 130_012 }, ["error server_version_num"]),
        ({ $0.settings["wal_level"] = "replica" }, ["error wal_level"]),
        ({ $0.settings["track_commit_timestamp"] = "off" }, ["error track_commit_timestamp"]),
        ({ $0.encoding = "SQL_ASCII" }, ["error server_encoding"]),
        ({ facts in (facts.slot, facts.slots) = (nil, 10) }, ["error max_replication_slots"]),
        ({ facts in (facts.slot, facts.slots) = (nil, 9) }, []),
        ({ $0.slots = 10 }, []),
        ({ $0.settings["max_wal_senders"] = "0" }, ["error max_wal_senders"]),
        ({ facts in (facts.slot, facts.senders) = (nil, 10) }, ["error max_wal_senders"]),
        ({ $0.senders = 10 }, []),
        ({ $0.collation = .init(recorded: "2.31", actual: "2.36") }, ["warning collation"]),
        ({ $0.collation = .init(recorded: "2.36", actual: "2.36") }, []),
        ({ $0.isStandby = true }, ["error pg_is_in_recovery"]),
        ({ $0.settings["fsync"] = "off" }, ["error fsync"]),
        ({ $0.settings["full_page_writes"] = "off" }, ["warning full_page_writes"]),
        ({ $0.settings["synchronous_commit"] = "off" }, ["warning synchronous_commit"]),
        ({ $0.settings["max_slot_wal_keep_size"] = "-1" }, ["warning max_slot_wal_keep_size"]),
        ({ $0.freeConnections = 29 }, ["warning max_connections"]),
        ({ $0.freeConnections = 30 }, []),
        ({ $0.isEncrypted = false }, []),
        ({ $0.role.isSuperuser = true }, ["warning sluice"]),
        ({ $0.slot = slot { $0.status = "lost" } }, ["error sluice_app"]),
        ({ $0.slot = slot { $0.restart = nil } }, ["error sluice_app"]),
        ({ $0.slot = slot { ($0.bytesKept, $0.bytesLeft) = (50, 50) } }, ["warning sluice_app"]),
        ({ $0.slot = slot { ($0.bytesKept, $0.bytesLeft) = (49, 51) } }, []),
        ({ $0.slot = slot { ($0.bytesKept, $0.bytesLeft) = (1 << 40, nil) } }, []),
        ({ $0.slot = nil }, []),
        (
            { facts in
                facts.settings["wal_level"] = "minimal"
                facts.settings["fsync"] = "off"
                facts.slot = nil
            }, ["error wal_level", "error fsync"]
        ),
    ]

    @Test(arguments: cases.indices) func `each problem has its severity and the setting`(index: Int) {
        let (change, words) = Self.cases[index]
        #expect(Self.words(Self.fit(change)) == words)
    }

    @Test func `every problem of a setting has the statement that mends it`() {
        for (change, words) in Self.cases where words.count == 1 && !words[0].hasSuffix("sluice_app") {
            let finding = Self.findings(Self.fit(change)).first { $0.severity != .note }
            #expect(finding.map { !$0.commands.isEmpty || !$0.fix.isEmpty } == true, "\(words)")
        }
        let level = Self.findings(Self.fit { $0.settings["wal_level"] = "replica" })[0]
        #expect(level.commands == ["ALTER SYSTEM SET wal_level = 'logical';"])
        #expect(level.fix == "It takes effect when PostgreSQL restarts." && level.repair == nil)
    }

    @Test func `a superuser is told the command that prints the SQL for a role of its own`() {
        let finding = Self.findings(Self.fit { $0.role.isSuperuser = true }).first { $0.severity == .warning }
        #expect(finding?.commands == ["sluice schema grants --app 'my app' --role sluice"])
    }

    /// A skew counts only beyond the error of its measurement.
    @Test(
        arguments: [
            (0, 1, []), (1_001, 0, ["warning clock"]), (-1_001, 0, ["warning clock"]), (1_500, 600, []), (1_000, 0, []),
            (300_001, 0, ["error clock"]), (-300_001, 0, ["error clock"]), (300_001, 1, ["warning clock"]),
        ] as [(Int64, Int64, [String])])
    func `the clocks are compared`(skew: Int64, error: Int64, words: [String]) {
        #expect(Self.words(Self.fit(), skew: skew, error: error) == words)
    }

    @Test func `a slot that nobody reads is a note with its size, and TLS and new releases are notes`() {
        let idle = Self.findings(Self.fit { $0.slot = Self.slot { $0.isActive = false } })
        #expect(idle.map(\.message).first?.hasPrefix("No gateway reads the replication slot sluice_app.") == true)
        #expect(Self.findings(Self.fit { $0.isEncrypted = false }).contains { $0.severity == .note && $0.subject == "sslmode" })
        let local = Self.findings(Self.fit { facts in (facts.isEncrypted, facts.isLocal) = (false, true) })
        #expect(!local.contains { $0.subject == "sslmode" })
        #expect(Self.findings(Self.fit { $0.version = 190_000 }).contains { $0.severity == .note && $0.subject == "server_version_num" })
    }
}
