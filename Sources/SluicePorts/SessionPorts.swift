package import SluiceCore

/// A message encoded for the wire once and shared by its recipients. `storage` is the transport's own form.
package struct Frame: Sendable {
    package let storage: any AnyObject & Sendable
    package let byteCount: Int

    package init(storage: any AnyObject & Sendable, byteCount: Int) {
        self.storage = storage
        self.byteCount = byteCount
    }
}

/// The connection to one client.
package protocol SessionChannel: AnyObject, Sendable {
    /// Queues frames behind earlier ones and flushes once. Never blocks.
    func send(_ frames: [Frame])
    /// The number of bytes queued and not yet written to the socket.
    var bufferedBytes: Int { get }
    /// `true` if the connection is closed.
    var isClosed: Bool { get }
    /// `true` for a reader in this process. Its frames are `MessageFrames`, and its commits name the changed properties.
    var isLocal: Bool { get }
    /// Waits until fewer than `bytes` are queued or the channel is closed.
    /// The channel closes if the client reads nothing for `Limits.unreadSeconds`.
    func drained(below bytes: Int) async
    /// Reports the client's user, once known and again with each token.
    func belongs(to user: String)
    /// Closes the connection after the queued frames.
    func close(_ error: SluiceError?)
}

extension SessionChannel {
    package var isLocal: Bool { false }
    package func belongs(to user: String) {}
}

/// Wraps encoded messages into frames.
package protocol FrameMaker: Sendable {
    func frame(_ message: [UInt8]) -> Frame
}

/// A user, as proven by a token.
package struct Authenticated: Sendable {
    package var user: UserContext
    /// The id of the login; nil for a session in this process.
    package var login: String?
    /// The expiry of the token, in milliseconds since 1970; `.max` for a session in this process, which has none.
    package var expires: Int64

    package init(user: UserContext, login: String? = nil, expires: Int64) {
        self.user = user
        self.login = login
        self.expires = expires
    }
}

package protocol Authenticator: Sendable {
    /// Verifies a token.
    /// - Throws: `tokenExpired`, `badAuthentication`, `userDisabled`; `invalidSession` if its login has ended.
    func authenticate(token: String) async throws -> Authenticated
    /// Returns the current data of a user who was authenticated before.
    /// - Throws: `badAuthentication` for a deleted user, `userDisabled`, `invalidSession`.
    func current(_ user: Authenticated) async throws -> UserContext
}

/// The sessions that an end concerns.
package enum SessionScope: Hashable, Sendable {
    case all
    case user(String)
    /// The sessions that the tokens of a login have opened.
    case login(String, of: String)

    package func contains(user: String, login: String?) -> Bool {
        switch self {
        case .all: true
        case .user(let id): id == user
        case .login(let id, let owner): owner == user && id == login
        }
    }
}

/// The gateway's record of a client replica.
package struct ClientFile: Sendable {
    package var id: ClientID
    package var secret: [UInt8]
    /// The highest changeset and ingest numbers that took effect.
    package var changeset: UInt64
    package var ingest: UInt64
    /// The first batch of asymmetric objects whose rejections the client may not have received; nil if none.
    package var refusedIngest: UInt64?
    /// The time of that changeset by the replica's clock; zero if unknown.
    package var time: HybridTime
    /// The number of sessions opened for the replica. Writes of a session with an older number are rejected.
    package var session: UInt64
    package var proven: ProvenHistory

    package init(
        id: ClientID, secret: [UInt8], changeset: UInt64, ingest: UInt64, refusedIngest: UInt64? = nil, time: HybridTime = .zero,
        session: UInt64, proven: ProvenHistory = ProvenHistory()
    ) {
        self.id = id
        self.secret = secret
        self.changeset = changeset
        self.ingest = ingest
        self.refusedIngest = refusedIngest
        self.time = time
        self.session = session
        self.proven = proven
    }

    /// The last batch whose acknowledgement the client no longer needs. The client resends a batch whose rejections it may have missed.
    package var toldIngest: UInt64 { refusedIngest.map { min($0 - 1, ingest) } ?? ingest }
}

/// The parts of the history that a replica has seen which the database is known to contain.
package struct ProvenHistory: Hashable, Sendable {
    /// `true` up to the replica's position.
    package var position: Bool
    /// `true` up to the point of the replica's last bootstrap.
    package var point: Bool

    package init(position: Bool = false, point: Bool = false) {
        self.position = position
        self.point = point
    }
}

/// The part of the database's history that a replica has seen.
package struct SeenHistory: Hashable, Sendable {
    /// The position up to which the replica has applied commits.
    package var applied: LSN
    /// The last transaction known at that position, and one that had ended at the point of the last bootstrap.
    package var position: HistoryAnchor?
    package var point: HistoryAnchor?

    package init(applied: LSN = .zero, position: HistoryAnchor? = nil, point: HistoryAnchor? = nil) {
        self.applied = applied
        self.position = position
        self.point = point
    }
}

package protocol ClientRegistry: Sendable {
    /// Registers a new replica for a user. A store with a bound of a user's replicas lets one that is not in use give way.
    /// - Throws: `tooManyRequests` at the bound, if all are in use.
    func allot(user: String) async throws -> ClientFile
    /// Begins a session of the replica. Writes of earlier sessions have ended or are rejected from now on.
    /// - Parameters:
    ///   - oldestBase: The lower bound of the bases of the replica's pending changesets; zero if unknown.
    /// - Throws: `badClientFile` for an unknown pair and for a replica that has seen history which the database lacks; `userMismatch` for
    ///   another user's replica.
    func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile
    /// Records that a batch of asymmetric objects took effect.
    /// - Parameter answer: The acknowledgement, kept as long as the client may request it again; nil if an empty one suffices.
    func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws
    /// Records that a batch of asymmetric objects took effect, and stores its rejected objects as compensating writes.
    ///
    /// Does nothing if the number or a higher one is recorded. Values of the rejected objects are not stored.
    /// - Parameter rejected: The rejected objects, with their changesets.
    /// - Returns: The compensating writes by number, one for each changeset.
    func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])]
    /// Returns the acknowledgement of a batch that took effect; nil if none is kept.
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]?
    /// Returns write rejections that the client has not acknowledged, by compensation number.
    /// One call returns some of those after `last`; it returns none if no more exist.
    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [WriteRejection])]
    /// Records that the client has applied the compensations up to a number.
    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws
    /// Stores write rejections that the client reports, for operators. They are never sent to the client.
    func keepReported(id: ClientID, _ writes: [WriteRejection]) async throws
}

/// The current schema of the app. Development mode lets it grow.
package protocol SchemaAuthority: Sendable {
    /// Returns the schema version in force.
    func current() -> AppSchema
    /// Adds the classes and properties that only `client` has.
    /// - Throws: `invalidSchemaChange` outside development mode, with the change's name.
    func extend(by client: [ObjectType]) async throws -> AppSchema
    /// Makes fields queryable, in development mode.
    /// - Throws: `queryNotQueryable` for a name that no queryable field may have.
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema
}

/// One version of the schema and its queryable fields.
package struct AppSchema: Sendable {
    package var version: UInt64
    package var schema: Schema
    package var fields: QueryableFields
    package var isDevelopment: Bool

    package init(version: UInt64, schema: Schema, fields: QueryableFields, isDevelopment: Bool) {
        self.version = version
        self.schema = schema
        self.fields = fields
        self.isDevelopment = isDevelopment
    }
}

/// Frames that hold their message unencoded, for channels in the same process.
package struct MessageFrames: FrameMaker {
    private final class Box: Sendable {
        let message: [UInt8]
        init(_ message: [UInt8]) { self.message = message }
    }

    package init() {}

    package func frame(_ message: [UInt8]) -> Frame { Frame(storage: Box(message), byteCount: message.count) }

    /// Returns the message of a frame; nil if another maker made it.
    package static func message(of frame: Frame) -> [UInt8]? { (frame.storage as? Box)?.message }
}
