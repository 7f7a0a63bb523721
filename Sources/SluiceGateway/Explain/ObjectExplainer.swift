import SluiceCore
import SluicePipeline
import SluicePorts
import SluicePostgres
import SluiceQuery
import SluiceRealmBridge
import SluiceValues
import Synchronization

/// Explains why a client replica has an object or lacks it.
///
/// It combines the row, the rules in use, the user's sessions on this gateway and the write rejections for the object.
struct ObjectExplainer: Sendable {
    let users: any UserDirectory
    let services: SessionServices
    let sessions: SessionService
    let realm: RealmSessionService
    let quarantine: QuarantineKeeper
    let rejected: WriteRejectionStore
    let clients: ClientStore
    let files: PostgresRealmClients

    /// The maximum number of write rejections in the explanation, the newest first.
    private static let refusals = 5
    /// The maximum number of client replicas without a session here, the most recently seen first.
    private static let shown = 10

    /// - Parameters:
    ///   - name: The user's id or e-mail.
    ///   - id: The primary key, in the form of `keyText`.
    /// - Throws: `userNotFound`; `unknownType`; `badRequest` for an invalid key.
    func explain(user name: String, type: String, id: String) async throws -> ObjectExplanation {
        let schema = services.authority.current().schema
        guard let index = schema.types.firstIndex(where: { $0.name == type && $0.kind == .topLevel }) else {
            throw SluiceError(
                .unknownType, "The schema has no top-level class '\(type)'.",
                fix: Suggestion.nearest(to: type, in: schema.types.map(\.name)).map { "Did you mean '\($0)'?" })
        }
        let key = try Self.key(id, of: schema.types[index])
        let account = try await users.account(calledOrMailed: name)
        let plan = try await Result.of { try await services.rules.openSession(user: account.context, types: [type]) }
        let subject = Subject(schema: schema, type: schema.types[index], key: key, row: try await row(key, of: schema.types[index]))
        let unfit = subject.row == nil ? try await quarantine.reason(type: type, key: key.keyText) : nil
        var asked: [AskedSession] = []
        let open = try await sessions.statuses(of: index, named: type, user: account.id)
        for session in open + (try await realm.statuses(of: index, named: type, user: account.id)) {
            let status = session.status
            let narrowed = try await Result.of { () async throws -> Narrowed in
                // The whole set, as the session passes it: rules may depend on all of its queries.
                let texts =
                    status.inquiry.isEmpty ? [] : try await services.rules.checkSubscription(user: account.context, queries: status.inquiry)
                return Narrowed(queries: status.own.map { texts[$0] }, included: status.included.map { texts[$0] })
            }
            asked.append(AskedSession(client: session.client, status: status, narrowed: narrowed))
        }
        let refusals = try await rejected.last(Self.refusals, of: ObjectKey(type: type, key: key), user: account.id)
        let here = Set(asked.map(\.status.summary.client))
        let elsewhere = try await away(account.id).filter { !here.contains($0.client) }
        return try ObjectExplanation(
            account, subject, quarantined: unfit, plan: plan.map { $0[type] }, asked, elsewhere: elsewhere, refusals)
    }

    /// The object to explain.
    struct Subject: Sendable {
        var schema: Schema
        var type: ObjectType
        var key: Value
        /// The row; nil if it does not exist or does not fit its class.
        var row: Row?
    }

    /// A session and the rules' result for its queries on the class.
    struct AskedSession: Sendable {
        var client: SessionClient
        var status: SessionStatus
        /// The conditions of the rules, or the error that rejects the session's set.
        var narrowed: Result<Narrowed, SluiceError>
    }

    /// The conditions that the rules add to a session's queries on the class.
    struct Narrowed: Sendable {
        /// The condition of each query, in the order of the session's queries.
        var queries: [String]
        /// The condition of objects included by links; nil if the session includes none of the class.
        var included: String?
    }

    /// A client replica without a session on this gateway.
    struct AwayClient: Sendable {
        var client: ClientID
        /// The time last seen.
        var at: String
        /// The client file of Realm's protocol that the replica serves; nil for a replica of the own protocol.
        var file: UInt64?
    }

    /// Returns the user's client replicas, the most recently seen first.
    private func away(_ user: String) async throws -> [AwayClient] {
        let replicas = try await clients.seen(of: user, limit: Self.shown)
        guard !replicas.isEmpty else { return [] }
        var byClient: [ClientID: UInt64] = [:]
        for (file, head) in try await files.heads(of: user, bytes: RealmBridge.headBytes, limit: Self.shown) {
            if let client = RealmBridge.client(ofState: head) { byClient[client] = file }
        }
        return replicas.map { AwayClient(client: $0.id, at: $0.at, file: byClient[$0.id]) }
    }

    private static func key(_ text: String, of type: ObjectType) throws(SluiceError) -> Value {
        let kind = type.properties[type.primaryKey ?? 0].type
        let key: Value? =
            switch kind {
            case .string: .string(text)
            case .int: Int64(text).map { .int($0) }
            case .objectId: ObjectIdentifierBytes(hex: text).map { .objectId($0) }
            case .uuid: UUIDBytes(text).map { .uuid($0) }
            default: nil
            }
        guard let key else {
            throw SluiceError(
                .badRequest, "'\(text)' is not a \(kind.name), the type of the primary key of \(type.name).",
                fix: "Write the key as sluice query run prints it: integers in decimal, object ids and UUIDs in hexadecimal digits.")
        }
        return key
    }

    private func row(_ key: Value, of type: ObjectType) async throws -> Row? {
        let predicate = Predicate.any(of: [key], in: type.primaryKey ?? 0, of: type)
        let sink = RowSink()
        _ = try await services.snapshots.read([SnapshotQuery(type: type, predicate: predicate)], into: sink)
        return sink.row
    }
}

/// Keeps the last row of a snapshot.
private final class RowSink: SnapshotSink {
    private let found = Mutex<Row?>(nil)

    var row: Row? { found.withLock { $0 } }

    /// Accepts any snapshot, as the explanation needs no position in the log.
    func begin(_ start: SnapshotStart) async throws -> Bool { true }

    func take(_ rows: [RowRef], of buffer: RowBuffer, query: Int, isInOrder: Bool) async throws {
        for row in rows { buffer.withView(row) { view in found.withLock { $0 = Row(view) } } }
    }
}

extension UserDirectory {
    /// Returns the account with this id, or else with this e-mail.
    ///
    /// - Throws: `userNotFound`.
    func account(calledOrMailed name: String) async throws -> UserAccount {
        if let account = try await find(id: name) { return account }
        if let email = try? EmailAddress(name), let account = try await find(email: email.text) { return account }
        throw SluiceError(.userNotFound, "No user has the id or e-mail \(name).")
    }
}

extension Result where Failure == SluiceError {
    /// Runs the body and captures a `SluiceError`.
    ///
    /// - Throws: Any other error.
    fileprivate static func of(_ body: () async throws -> Success) async throws -> Result {
        do { return .success(try await body()) } catch let error as SluiceError { return .failure(error) }
    }
}
