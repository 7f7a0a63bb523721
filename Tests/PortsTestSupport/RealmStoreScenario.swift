import SluiceCore
package import SluicePorts

/// A situation that every `RealmClientStore` must handle alike, with its expectations.
package struct RealmStoreScenario: Sendable, CustomStringConvertible {
    /// The expectations of a scenario that did not hold.
    package struct Findings {
        package private(set) var texts: [String] = []

        mutating func expect(_ isTrue: Bool, _ text: @autoclosure () -> String) {
            if !isTrue { texts.append(text()) }
        }

        mutating func expect(_ code: ErrorCode, _ text: String, _ body: () async throws -> Void) async {
            do {
                try await body()
                texts.append("\(text): no error, not \(code.name)")
            } catch let error as SluiceError {
                expect(error.code == code, "\(text): \(error.code.name), not \(code.name)")
            } catch {
                texts.append("\(text): \(error)")
            }
        }
    }

    package let description: String
    private let play: @Sendable (any RealmClientStore, inout Findings) async throws -> Void

    /// The bounds of the stores that play scenarios.
    package static let bounds = ClientStreamBounds(entries: 4, bytes: 1_000, age: 1_000, compensations: 2)

    package static let all: [RealmStoreScenario] = [
        RealmStoreScenario(description: "a new file", play: newFile),
        RealmStoreScenario(description: "a wrong pair and a wrong user", play: wrongPair),
        RealmStoreScenario(description: "values at their limits", play: limits),
        RealmStoreScenario(description: "a superseded session", play: superseded),
        RealmStoreScenario(description: "a session of no file", play: noFile),
        RealmStoreScenario(description: "confirmed entries", play: confirmed),
        RealmStoreScenario(description: "entries out of order", play: outOfOrder),
        RealmStoreScenario(description: "a bootstrap", play: bootstrap),
        RealmStoreScenario(description: "the state of views", play: replica),
        RealmStoreScenario(description: "compensating writes beyond the bound", play: manyCompensations),
        RealmStoreScenario(description: "a stream beyond its bounds", play: beyondBounds),
        RealmStoreScenario(description: "a stream at its bounds", play: atBounds),
    ]

    /// Returns the expectations that do not hold on a store with the bounds of `bounds`.
    package func findings(of store: any RealmClientStore) async throws -> [String] {
        var findings = Findings()
        try await play(store, &findings)
        return findings.texts
    }

    // MARK: Parts

    /// An entry of cost 64 and its changeset's bytes.
    package static func entry(
        _ server: UInt64, client: UInt64 = 0, bytes: Int = 3, at created: Int64 = 0, undoes: Bool = false
    ) -> RealmStreamEntry {
        RealmStreamEntry(
            serverVersion: server, clientVersion: client, timestamp: 5, origin: 1, changeset: [UInt8](repeating: 9, count: bytes),
            created: created, compensation: undoes ? RealmCompensation(serverVersion: server, clientVersion: client, rejected: []) : nil)
    }

    /// A store with a file and its user's open session.
    private static func opened(_ store: any RealmClientStore) async throws -> (file: RealmFileIdent, session: RealmFileSession) {
        let file = try await store.allot(user: "ann")
        return (file, try await store.open(file, user: "ann").session)
    }

    private static func versions(_ client: StoredRealmClient) -> [UInt64] { client.entries.map(\.serverVersion) }

    // MARK: Scenarios

    @Sendable private static func newFile(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (first, second) = (try await store.allot(user: "ann"), try await store.allot(user: "ann"))
        findings.expect(first.ident > 1 && second.ident > first.ident, "idents \(first.ident), \(second.ident); 1 is the server")
        findings.expect([first, second].allSatisfy { $0.salt > 0 && $0.salt <= UInt64(Int64.max) }, "salts must be positive")
        findings.expect(first.salt != second.salt, "both salts are \(first.salt)")
        let client = try await store.open(first, user: "ann")
        findings.expect(client == StoredRealmClient(record: RealmClientRecord(file: first), sessionNumber: 1), "\(client)")
        let again = try await store.open(first, user: "ann")
        findings.expect(again.session == RealmFileSession(file: first.ident, number: 2), "\(again.session)")
    }

    @Sendable private static func wrongPair(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        let wrong = [
            RealmFileIdent(ident: file.ident, salt: file.salt ^ 1), RealmFileIdent(ident: file.ident + 1_000, salt: file.salt),
            RealmFileIdent(ident: 0, salt: 0), RealmFileIdent(ident: .max, salt: .max),
        ]
        for pair in wrong {
            for user in ["ann", "bob"] {
                await findings.expect(.badClientFile, "\(pair), \(user)") { _ = try await store.open(pair, user: user) }
            }
        }
        await findings.expect(.userMismatch, "bob") { _ = try await store.open(file, user: "bob") }
        // None of these attempts has superseded the session.
        try await store.append([entry(1)], to: session)
        findings.expect(versions(try await store.open(file, user: "ann")) == [1], "the entry is missing")
    }

    @Sendable private static func limits(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        let largest = UInt64(Int64.max)
        let rejected = [
            RealmRejectedUpdate(reason: "NUL \0, \"quotes\" \\ and 水🛫", table: "Täsk", key: [0, 255, 7]),
            RealmRejectedUpdate(reason: "", table: "", key: []),
        ]
        var entries = [
            RealmStreamEntry(serverVersion: 1, clientVersion: 0, timestamp: 0, origin: 0, changeset: [], created: .min),
            RealmStreamEntry(
                serverVersion: largest, clientVersion: largest, timestamp: .max, origin: .max, changeset: [0, 0x5C, 0x27, 255], created: 0,
                compensation: RealmCompensation(serverVersion: largest, clientVersion: largest, rejected: rejected)),
        ]
        try await store.append(entries, to: session)
        let client = try await store.open(file, user: "ann")
        findings.expect(client.entries == entries, "\(client.entries)")
        await findings.expect(.internalError, "64 bits") {
            try await store.record(RealmUploadProgress(clientVersion: 1, serverVersion: .max), of: client.session)
        }
        await findings.expect(.internalError, "64 bits") { try await store.beginBootstrap(queryVersion: .max, of: client.session) }
        await findings.expect(.internalError, "64 bits") {
            try await store.record(RealmUploadProgress(clientVersion: .max, serverVersion: 1), of: client.session)
        }
        await findings.expect(.internalError, "64 bits") {
            try await store.completeBootstrap(RealmClientRecord.View(queryVersion: 1, serverVersion: .max), of: client.session)
        }
        entries[1].serverVersion = .max
        await findings.expect(.internalError, "64 bits") { try await store.append([entries[1]], to: client.session) }
        var expected = client
        expected.sessionNumber += 1
        let after = try await store.open(file, user: "ann")
        findings.expect(after == expected, "an error changed \(after)")
    }

    @Sendable private static func superseded(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, old) = try await opened(store)
        try await store.append([entry(1)], to: old)
        let client = try await store.open(file, user: "ann")
        await findings.expect(.resync, "append") { try await store.append([entry(2)], to: old) }
        await findings.expect(.resync, "append nothing") { try await store.append([], to: old) }
        await findings.expect(.resync, "record") { try await store.record(.init(clientVersion: 1, serverVersion: 1), of: old) }
        await findings.expect(.resync, "begin") { try await store.beginBootstrap(queryVersion: 1, of: old) }
        await findings.expect(.resync, "complete") { try await store.completeBootstrap(.init(queryVersion: 1, serverVersion: 1), of: old) }
        await findings.expect(.resync, "cancel") { try await store.cancelBootstrap(of: old) }
        await findings.expect(.resync, "lose") { try await store.lose(old) }
        try await store.append([entry(2)], to: client.session)
        var expected = client
        expected.entries.append(entry(2))
        expected.sessionNumber += 1
        let after = try await store.open(file, user: "ann")
        findings.expect(after == expected, "\(after)")
    }

    @Sendable private static func noFile(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (_, session) = try await opened(store)
        for file in [0, 1, session.file + 1_000, .max] {
            let none = RealmFileSession(file: file, number: 1)
            await findings.expect(.badClientFile, "append to \(file)") { try await store.append([entry(1)], to: none) }
            await findings.expect(.badClientFile, "record of \(file)") {
                try await store.record(RealmUploadProgress(clientVersion: 1, serverVersion: 1), of: none)
            }
        }
        // A number that no session has had yet.
        await findings.expect(.resync, "a session of the future") {
            try await store.append([entry(1)], to: RealmFileSession(file: session.file, number: session.number + 1))
        }
    }

    @Sendable private static func confirmed(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        try await store.append([entry(3), entry(5)], to: session)
        try await store.append([entry(8, client: 2)], to: session)
        try await store.record(RealmUploadProgress(clientVersion: 0, serverVersion: 4), of: session)
        try await store.record(RealmUploadProgress(clientVersion: 7, serverVersion: 5), of: session)
        // Smaller numbers, as of a message that was late.
        try await store.record(RealmUploadProgress(clientVersion: 6, serverVersion: 4), of: session)
        let client = try await store.open(file, user: "ann")
        findings.expect(client.entries == [entry(8, client: 2)], "\(client.entries)")
        findings.expect(client.record.upload == RealmUploadProgress(clientVersion: 7, serverVersion: 5), "\(client.record.upload)")
        findings.expect(client.record.acknowledged == 5, "acknowledged \(client.record.acknowledged)")
        // There is room for as many entries as were confirmed.
        try await store.append((9...11).map { entry($0, client: 2) }, to: client.session)
        let full = try await store.open(file, user: "ann")
        findings.expect(versions(full) == [8, 9, 10, 11] && !full.record.isLost, "\(versions(full)), lost: \(full.record.isLost)")
    }

    @Sendable private static func outOfOrder(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        try await store.append([entry(3, client: 4)], to: session)
        let wrong = [
            [entry(3, client: 4)], [entry(2, client: 4)], [entry(4, client: 3)], [entry(4, client: 4), entry(4, client: 4)],
            [entry(5, client: 5), entry(6, client: 4)], [entry(0, client: 4)],
        ]
        for entries in wrong {
            await findings.expect(.internalError, "\(entries.map(\.serverVersion))") { try await store.append(entries, to: session) }
        }
        // Neither a removed entry nor a view is overtaken.
        try await store.record(RealmUploadProgress(clientVersion: 4, serverVersion: 3), of: session)
        await findings.expect(.internalError, "confirmed") { try await store.append([entry(3, client: 4)], to: session) }
        try await store.completeBootstrap(RealmClientRecord.View(queryVersion: 1, serverVersion: 9), of: session)
        await findings.expect(.internalError, "in the view") { try await store.append([entry(9, client: 4)], to: session) }
        try await store.append([entry(10, client: 4)], to: session)
        let after = try await store.open(file, user: "ann")
        findings.expect(after.entries == [entry(10, client: 4)], "\(after.entries)")
    }

    @Sendable private static func bootstrap(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        try await store.append([entry(1), entry(2, undoes: true), entry(5)], to: session)
        try await store.beginBootstrap(queryVersion: 1, of: session)
        let building = try await store.open(file, user: "ann")
        findings.expect(building.record.building == 1 && building.record.view == nil, "\(building.record)")
        try await store.cancelBootstrap(of: building.session)
        try await store.beginBootstrap(queryVersion: 2, of: building.session)
        try await store.beginBootstrap(queryVersion: 3, of: building.session)
        let view = RealmClientRecord.View(queryVersion: 3, serverVersion: 4)
        try await store.completeBootstrap(view, of: building.session)
        let done = try await store.open(file, user: "ann")
        findings.expect(done.record.building == nil && done.record.view == view, "\(done.record)")
        findings.expect(versions(done) == [5] && done.record.compensations.map(\.serverVersion) == [2], "\(done)")
        try await store.beginBootstrap(queryVersion: 4, of: done.session)
        try await store.cancelBootstrap(of: done.session)
        try await store.record(RealmUploadProgress(clientVersion: 0, serverVersion: 1), of: done.session)
        let kept = try await store.open(file, user: "ann").record
        findings.expect(kept.building == nil && kept.view == view && kept.compensations.count == 1, "\(kept)")
        let last = RealmFileSession(file: file.ident, number: done.sessionNumber + 1)
        try await store.record(RealmUploadProgress(clientVersion: 0, serverVersion: 2), of: last)
        findings.expect(try await store.open(file, user: "ann").record.compensations.isEmpty, "a confirmed compensating write is kept")
    }

    @Sendable private static func replica(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        try await store.keep(replica: [0, 255, 1], ofView: 0, of: session)
        let kept = try await store.open(file, user: "ann")
        findings.expect(kept.record.replica == [0, 255, 1], "\(kept.record.replica)")
        await findings.expect(.resync, "keep") { try await store.keep(replica: [2], ofView: 0, of: session) }
        // A view without a state keeps the one before.
        for (version, replica) in [(1, [7, 7]), (2, nil)] as [(UInt64, [UInt8]?)] {
            let view = RealmClientRecord.View(queryVersion: version, serverVersion: version, replica: replica)
            try await store.completeBootstrap(view, of: kept.session)
        }
        // A state of the view before the last one comes too late.
        for view: UInt64 in 0...1 { try await store.keep(replica: [3], ofView: view, of: kept.session) }
        let done = try await store.open(file, user: "ann")
        let view = RealmClientRecord.View(queryVersion: 2, serverVersion: 2)
        findings.expect(done.record.replica == [7, 7] && done.record.view == view, "\(done)")
        try await store.keep(replica: [4], ofView: 2, of: done.session)
        findings.expect(try await store.open(file, user: "ann").record.replica == [4], "a state of the last view is not stored")
        await findings.expect(.badClientFile, "keep in no file") {
            try await store.keep(replica: [1], ofView: 0, of: RealmFileSession(file: file.ident + 1_000_000, number: 1))
        }
    }

    @Sendable private static func manyCompensations(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let (file, session) = try await opened(store)
        for version: UInt64 in 1...5 {
            try await store.append([entry(version, undoes: true)], to: session)
            try await store.completeBootstrap(RealmClientRecord.View(queryVersion: version, serverVersion: version), of: session)
        }
        let client = try await store.open(file, user: "ann")
        findings.expect(client.record.compensations.map(\.serverVersion) == [4, 5], "\(client.record.compensations)")
        findings.expect(client.entries.isEmpty && !client.record.isLost, "\(client)")
    }

    @Sendable private static func beyondBounds(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let cases: [(String, [RealmStreamEntry])] = [
            ("entries", (2...5).map { entry($0) }), ("bytes", [entry(2, bytes: 1_000 - 64 - 64 - 67 + 1), entry(3, bytes: 0)]),
            ("age", [entry(2, at: 1_001)]), ("age within one call", [entry(2, at: 500), entry(3, at: 1_001)]),
        ]
        for (name, entries) in cases {
            let (file, session) = try await opened(store)
            try await store.append([entry(1, undoes: true)], to: session)
            try await store.append(entries, to: session)
            let lost = try await store.open(file, user: "ann")
            findings.expect(lost.record.isLost && lost.entries.isEmpty && lost.record.compensations.isEmpty, "\(name): \(lost)")
            // A lost stream takes no entries, in order or not.
            try await store.append([entry(9), entry(1)], to: lost.session)
            findings.expect(versions(try await store.open(file, user: "ann")).isEmpty, "\(name): an entry after the loss")
        }
        let (file, session) = try await opened(store)
        try await store.append([entry(1, undoes: true), entry(2, undoes: true)], to: session)
        try await store.completeBootstrap(RealmClientRecord.View(queryVersion: 1, serverVersion: 1), of: session)
        try await store.lose(session)
        let record = try await store.open(file, user: "ann").record
        findings.expect(record.isLost && record.compensations.isEmpty && record.view != nil, "\(record)")
    }

    @Sendable private static func atBounds(_ store: any RealmClientStore, _ findings: inout Findings) async throws {
        let cases: [(String, [RealmStreamEntry])] = [
            ("entries", (2...4).map { entry($0) }), ("bytes", [entry(2, bytes: 1_000 - 64 - 64 - 67), entry(3, bytes: 0)]),
            ("age", [entry(2, at: 1_000)]), ("a clock that goes back", [entry(2, at: -5_000), entry(3, at: 900)]),
        ]
        for (name, entries) in cases {
            let (file, session) = try await opened(store)
            try await store.append([entry(1)], to: session)
            try await store.append(entries, to: session)
            let client = try await store.open(file, user: "ann")
            findings.expect(client.entries == [entry(1)] + entries && !client.record.isLost, "\(name): \(client)")
        }
    }
}
