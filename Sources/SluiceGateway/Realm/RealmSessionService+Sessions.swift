import SluicePipeline
import SluiceRealmBridge

// The open sessions, for operators.
extension RealmSessionService {
    /// The connections of which `newest` reads the sessions. Others have not opened a file yet.
    private static let looked = 200

    /// The idents of the open client files, in no order.
    var files: [UInt64] {
        get async {
            var files: [UInt64] = []
            for socket in sockets { files += await socket.files }
            return files
        }
    }

    /// Returns a user's open client files with their queries for a class, sorted by file.
    ///
    /// - Throws: An error of the query language if a subscription set does not fit the current schema.
    func statuses(of type: Int, named name: String, user: String) async throws -> [ClientSession] {
        var agents: [UInt64: RealmAgent] = [:]
        for socket in sockets where socket.user == user {
            for file in await socket.files { agents[file] = socket.agent }
        }
        return try await bridge.statuses(of: type, named: name, user: user).map { open in
            ClientSession(client: SessionClient(agents[open.file] ?? RealmAgent(nil), file: open.file), status: open.status)
        }
    }

    /// Returns the newest sessions with a client file, newest first.
    func newest(_ limit: Int) async -> [ListedSession] {
        var listed: [ListedSession] = []
        for socket in sockets.sorted(by: { $0.began > $1.began }).prefix(Self.looked) {
            for file in await socket.files.sorted() {
                guard listed.count < limit else { return listed }
                guard let summary = await bridge.summary(of: file) else { continue }
                listed.append(ListedSession(client: SessionClient(socket.agent, file: file), summary: summary, began: socket.began))
            }
        }
        return listed
    }
}
