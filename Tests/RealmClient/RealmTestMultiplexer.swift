package import RealmTestSupport
package import SluiceRealm

/// A client of Realm's protocol with the sessions of several files on one connection, as SDKs have for the files of one user. One task uses
/// it.
package final class RealmTestMultiplexer {
    /// The files by the numbers of their sessions.
    package private(set) var files: [UInt64: RealmTestFile] = [:]
    private let link = RealmTestLink()

    package init() {}

    /// - Parameter url: The gateway, `http://…`.
    package func connect(_ url: String, app: String, token: String) async throws {
        try await link.connect(url, app: app, token: token)
    }

    package func disconnect() { link.disconnect() }

    /// Binds the session of a file, which may have been bound before.
    package func bind(_ file: RealmTestFile) async throws {
        files[file.session] = file
        try await change(file.session) { $0.connect() }
    }

    /// Changes a file and sends its messages.
    package func change(_ session: UInt64, _ body: (inout RealmTestFile) throws -> [RealmClientMessage]) async throws {
        guard var file = files[session] else { throw RealmTestFile.Fault("there is no session \(session)") }
        let messages = try body(&file)
        files[session] = file
        try await link.send(messages)
    }

    /// Commits a transaction of a file and sends it.
    package func write(_ session: UInt64, _ instructions: [RealmInstruction]) async throws {
        try await change(session) { file in
            try file.commit(instructions, at: RealmTestLink.time(ahead: 0))
            return file.later()
        }
    }

    /// Replaces the subscriptions of a file, and waits until the view is complete.
    package func subscribe(_ session: UInt64, _ queries: [String: String]) async throws {
        try await change(session) { file in
            file.subscribe(queries)
            return file.later()
        }
        try await receive(session) { $0.isQueryComplete && $0.isMarkReached }
    }

    /// Handles messages of all sessions until the condition holds for one of them.
    package func receive(_ session: UInt64, until isEnough: (RealmTestFile) -> Bool) async throws {
        let alarm = link.alarm()
        defer { alarm.cancel() }
        while let file = files[session], !isEnough(file) {
            guard let message = try await link.next() else {
                let error = file.error.map { "\($0.code) \($0.message)" } ?? "none"
                throw RealmTestClient.Ended(description: "The connection ended: \(link.goodbye ?? "no reason"); error: \(error)")
            }
            guard message.session > 0 else { continue }
            try await change(message.session) { try $0.receive(message) }
        }
    }
}
