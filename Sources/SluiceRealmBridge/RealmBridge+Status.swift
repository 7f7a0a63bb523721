package import SluiceCore
package import SluicePipeline
import SluicePorts
import SluiceRealm

/// The session of an open client file, for explanations.
package struct RealmFileStatus: Sendable {
    /// The ident of the client file.
    package var file: UInt64
    /// The status. Its version is that of the client's own subscription set.
    package var status: SessionStatus
}

extension RealmBridge {
    /// Returns the sessions of a user's open files with their queries for a class, sorted by file.
    ///
    /// - Throws: An error of the query language if a subscription set does not fit the current schema.
    package func statuses(of type: Int, named name: String, user: String) async throws -> [RealmFileStatus] {
        var statuses: [RealmFileStatus] = []
        for view in open.filter({ $0.client.user == user }) {
            guard let status = try await view.status(of: type, named: name) else { continue }
            statuses.append(RealmFileStatus(file: view.client.stored.record.file.ident, status: status))
        }
        return statuses.sorted { $0.file < $1.file }
    }

    /// The bytes of a stored state that suffice for `client(ofState:)`.
    package static var headBytes: Int { BridgeReplica.headBytes }

    /// Returns the replica of the pipeline that serves a file; nil before its first session.
    ///
    /// - Parameter head: The first bytes of the file's stored state (`RealmClientRecord.replica`).
    package static func client(ofState head: [UInt8]) -> ClientID? {
        BridgeReplica.client(inHead: head).map { ClientID(rawValue: $0) }
    }

    /// Returns the session of a file; nil if the file is not open.
    package func summary(of file: UInt64) async -> SessionSummary? { await view(of: file)?.summary }
}

extension BridgeView {
    /// The session with the version of the client's own set; nil unless the session is open.
    var summary: SessionSummary? {
        get async { await session.summary.map { translated($0) } }
    }

    func status(of type: Int, named name: String) async throws -> SessionStatus? {
        guard var status = try await session.status(of: type, named: name, user: client.user) else { return nil }
        status.summary = translated(status.summary)
        return status
    }

    /// Replaces the version of the hidden set. The client has the view once the stream has passed it.
    private func translated(_ summary: SessionSummary) -> SessionSummary {
        var summary = summary
        summary.version = stream.subscriptions[summary.version]?.query.version ?? 0
        summary.isLive = summary.isLive && !stream.isBehind && !stream.isBuilding
        return summary
    }
}
