package import SluiceCore

/// A message made ready for the wire once and shared by all who get it. `storage` is the transport's own form.
package struct Frame: Sendable {
    package let storage: any AnyObject & Sendable
    package let byteCount: Int

    package init(storage: any AnyObject & Sendable, byteCount: Int) {
        self.storage = storage
        self.byteCount = byteCount
    }
}

/// The way to one client.
package protocol SessionChannel: AnyObject, Sendable {
    /// Queues frames behind those before them and flushes once. Never waits.
    func send(_ frames: [Frame])
    /// Bytes queued and not yet taken by the socket.
    var bufferedBytes: Int { get }
    /// Whether the connection is gone.
    var isClosed: Bool { get }
    /// Returns when fewer than `bytes` are queued, or the channel is closed; it is when the client does not read on for
    /// `Limits.unreadSeconds`.
    func drained(below bytes: Int) async
    /// Who the client is, as soon as that is known, and again with each token.
    func belongs(to user: String)
    /// Ends the connection after what is queued.
    func close(_ error: SluiceError?)
}

extension SessionChannel {
    package func belongs(to user: String) {}
}

/// Makes frames of encoded messages.
package protocol FrameMaker: Sendable {
    func frame(_ message: [UInt8]) -> Frame
}

/// A user as a token proves it.
package struct Authenticated: Sendable {
    package var user: UserContext
    /// Milliseconds since 1970.
    package var expires: Int64

    package init(user: UserContext, expires: Int64) {
        self.user = user
        self.expires = expires
    }
}

package protocol Authenticator: Sendable {
    /// Throws `tokenExpired`, `badAuthentication`, `userDisabled`.
    func authenticate(token: String) async throws -> Authenticated
    /// A user as they are now. Throws `badAuthentication` for one who is gone, `userDisabled`.
    func user(id: String) async throws -> UserContext
}

/// What the gateway remembers of a client file.
package struct ClientFile: Sendable {
    package var id: ClientID
    package var secret: [UInt8]
    /// The highest changeset and ingest numbers that took effect.
    package var changeset: UInt64
    package var ingest: UInt64
    /// The first batch of asymmetric objects whose refusals the client may not have heard; nil when there is none.
    package var refusedIngest: UInt64?
    /// When that changeset was made, by the file's clock; zero when that is not known.
    package var time: HybridTime
    /// How often the file has been opened: writes of a session with an older number are refused.
    package var session: UInt64
    /// Whether the database is known to have what the file has seen, up to its position; and up to its bootstrap's point.
    package var isPositionProven: Bool
    package var isPointProven: Bool

    package init(
        id: ClientID, secret: [UInt8], changeset: UInt64, ingest: UInt64, refusedIngest: UInt64? = nil, time: HybridTime = .zero,
        session: UInt64, isPositionProven: Bool = false, isPointProven: Bool = false
    ) {
        self.id = id
        self.secret = secret
        self.changeset = changeset
        self.ingest = ingest
        self.refusedIngest = refusedIngest
        self.time = time
        self.session = session
        self.isPositionProven = isPositionProven
        self.isPointProven = isPointProven
    }

    /// Up to which batch the client needs no acknowledgement any more: one whose refusals it may not have heard it sends again.
    var toldIngest: UInt64 { refusedIngest.map { min($0 - 1, ingest) } ?? ingest }
}

/// What a file has seen of the database.
package struct SeenHistory: Hashable, Sendable {
    /// Up to where.
    package var applied: LSN
    /// The last transaction that was known there; and one that was over at the point of its last bootstrap.
    package var position: Witness?
    package var point: Witness?

    package init(applied: LSN = .zero, position: Witness? = nil, point: Witness? = nil) {
        self.applied = applied
        self.position = position
        self.point = point
    }
}

package protocol ClientRegistry: Sendable {
    func allot(user: String) async throws -> ClientFile
    /// Begins a session of the file: writes of those before are over or refused from now on.
    /// Throws `badClientFile` for an unknown pair and a file that has seen what the database has not; `userMismatch` for another user's.
    /// - Parameters:
    ///   - oldestBase: no changeset that the file has yet to send has an older base; zero when it does not say.
    func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile
    /// Notes that a batch of asymmetric objects took effect.
    /// - Parameter answer: its acknowledgement, which is kept as long as the client may ask for it again; nil: an empty one will do.
    func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws
    /// The acknowledgement of a batch that took effect; nil when none is kept.
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]?
    /// Rejected writes that the client has not acknowledged, by compensation number: some of those after `last`, none when there are no more.
    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [RejectedWrite])]
    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws
}

/// The app's schema as it stands now; development mode lets it grow.
package protocol SchemaAuthority: Sendable {
    func current() -> AppSchema
    /// Adds what `client` has and the server has not. Throws `invalidSchemaChange` outside development mode, naming it.
    func extend(by client: [ObjectType]) async throws -> AppSchema
    /// Makes fields queryable (development mode, QF-4).
    /// - Throws: `queryNotQueryable` for a name that no queryable field may have (QF-9).
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema
}

/// Schema and queryable fields, one version of them.
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
