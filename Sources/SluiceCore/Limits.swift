/// Every bound of the product in one place: unit, default, and what happens beyond (docs/limits.md is the prose).
package enum Limits {
    /// One WebSocket message from a client, bytes. Beyond: error `limits-exceeded`, close 1009 (LIM: 16 to 20 MB in the original).
    package static let messageBytes = 16 << 20
    /// Messages, and frames, of a peer that has not authenticated, bytes. Beyond: error `hello-too-large`, close 1009.
    package static let openingBytes = 64 << 10
    /// Seconds from a connection's first byte to its first request, or to a complete Hello. Beyond: closed, for a WebSocket with `hello-timeout`.
    package static let openingSeconds: Int64 = 10
    /// Classes, and properties of all of them, in one Hello; classes in what it holds. Beyond: `limits-exceeded`.
    package static let helloClasses = 4_096
    package static let helloProperties = 65_536
    /// Connections of a server, and of those the ones that have not authenticated; the others are a reserve for sessions.
    /// Beyond: the oldest that has not authenticated is closed, or the new one if there is none.
    package static let connections = 12_000
    package static let unauthenticatedConnections = 4_000
    /// Connections from one address (IPv4) or network of 64 bits (IPv6), and of those the ones that have not authenticated.
    /// Beyond: closed when they are accepted, or `too-many-connections` behind a proxy.
    package static let connectionsPerAddress = 4_000
    package static let unauthenticatedPerAddress = 1_000
    /// Requests from one address in a second, and at once. Beyond: 429 `too-many-requests`.
    package static let requestsPerSecond = 500
    package static let requestBurst = 2_000
    /// Addresses whose requests are counted, at most twice as many. Beyond: the longest unused are forgotten.
    package static let countedAddresses = 10_000
    /// The least that a request's body must bring in a second, bytes; seconds that it may be behind; and seconds for all of it, without and
    /// with a proven sender. Time in which the gateway does not read does not count for the rate. Beyond: 408 `request-timeout`.
    package static let bodyBytesPerSecond = 32
    package static let bodyGraceSeconds: Int64 = 20
    package static let bodySeconds: Int64 = 60
    package static let provenBodySeconds: Int64 = 6 * 3_600
    /// One subscription, and one whole set, bytes of query text (QL-6). Beyond: query error `limits-exceeded`.
    package static let queryBytes = 256 << 10
    /// The name of a class, bytes: it becomes that of a table and of a topic. Beyond: `invalid-name`.
    package static let classNameBytes = 57
    /// The name of a property, bytes: PostgreSQL cuts longer names of columns. Beyond, in development mode: `invalid-name`.
    package static let propertyNameBytes = 63
    /// An e-mail address of a user, bytes in its normal form. Beyond: `invalid-email`.
    package static let emailBytes = 320
    /// Nesting of containers, of queries, of JSON. Beyond: malformed (LIM: 100).
    package static let nestingDepth = 100
    /// Leaves (comparisons) of one query. Beyond: query error `limits-exceeded`.
    package static let queryLeaves = 4_096
    /// Values in one IN list. Beyond: query error `limits-exceeded`.
    package static let inListValues = 10_000
    /// Values in all lists of one query; a list argument counts each time it is used. Beyond: query error `limits-exceeded`.
    package static let queryListValues = 65_536
    /// Sort keys, and paths of DISTINCT, of one subscription with a limit, and links of one of them: each link is a join of PostgreSQL's
    /// whenever the objects are found. Beyond: query error `query-too-large`.
    package static let orderKeys = 32
    package static let orderLinks = 4
    /// Vertices of all polygons of one query, a box or a circle for four: each costs the angle of an arc for every row, and the hole of a
    /// polygon one for every vertex around it when the query is bound. Beyond: query error `limits-exceeded`.
    package static let shapeVertices = 1_024
    /// One pattern of LIKE or CONTAINS, and all of one query, bytes: testing a text of n bytes takes up to n times the pattern.
    /// Beyond: query error `limits-exceeded`.
    package static let patternBytes = 1_024
    package static let queryPatternBytes = 8_192
    /// Bytes waiting to be sent to one client. Beyond: the session is disconnected with `slow-client`; it comes back by bootstrap.
    package static let outboxBytes = 16 << 20
    /// A client that is waited for must read at least so much in so long.
    package static let unreadBytes = 64 << 10
    package static let unreadSeconds: UInt64 = 30
    /// Bytes of a bootstrap that wait for its end, to be sent with it. Beyond: they are sent ahead.
    package static let joinedBootstrapBytes = 32 << 10
    /// Bytes of changes held for one session while its bootstrap runs. Beyond: the bootstrap starts again.
    package static let stagedBytes = 32 << 20
    /// One object in the log, bytes; a record has it before and after. A topic that takes smaller records lowers it (`RowBound`).
    /// Beyond: a write is undone, and a row that another program wrote is left out and quarantined.
    package static let rowBytes = 9 << 20
    /// What a record has beside the two objects, bytes: positions, keys, names, and the frames of the batch.
    package static let recordFrameBytes = 64 << 10
    /// The Kafka key of a record, bytes. Beyond: the record has no key; its partition stays the same.
    package static let recordKeyBytes = 1 << 10
    /// Objects whose write times a client may ask for in one Subscribe. Beyond: error `limits-exceeded`; the SDK names the first ones.
    package static let pendingObjects = 4_096
    /// Rows, and bytes, of one bootstrap message.
    package static let bootstrapRows = 2_000
    package static let bootstrapBytes = 256 << 10
    /// Changes, and bytes, of one batch read from the WAL.
    package static let captureBatchChanges = 4_096
    package static let captureBatchBytes = 4 << 20
    /// Bytes of changes read from the log and not yet below the watermark. Beyond: a partition's changes are thrown away, and its sessions
    /// resynchronise by bootstrap once the watermark has passed them.
    package static let feedBytes = 64 << 20
    /// Bytes of changes kept in memory behind the watermark for sessions that come back. Beyond: the oldest go; who lacks them is told
    /// from the log.
    package static let recentBytes = 32 << 20
    /// Seconds that a partition is still read when no session needs it any more, for those that come back.
    package static let feedLingerSeconds: UInt64 = 60
    /// Objects, and bytes, of one transaction of ingested objects; the same bytes for one Ingest message of the SDK.
    package static let ingestBatchObjects = 4_000
    package static let ingestBatchBytes = 4 << 20
    /// Objects that the ingest rules are asked about at a time, and of one Ingest message.
    package static let ingestRulesObjects = 1_000
    /// Ingest messages of a client file that are sent and not acknowledged. Beyond: the next waits, at the SDK, and at the gateway for whoever
    /// sends it all the same. So many acknowledgements of a file are kept when they say what was refused.
    package static let ingestWindow = 4
    /// One letter of the dead-letter topic, bytes: what brokers take by default. Beyond: the object in it is cut.
    package static let deadLetterBytes = 1_000_000
    /// One asymmetric object as JSON, bytes: as much as other objects may have. Beyond: refused, by the SDK when it is written.
    package static let ingestObjectBytes = 9 << 20
    /// Objects, and bytes, of one request by HTTP that are handed over at a time; further pieces of its body are read when those are
    /// acknowledged.
    package static let ingestPieceObjects = 1_000
    package static let ingestPieceBytes = 512 << 10
    /// Requests by HTTP that ingest at a time, and bytes of theirs that are not acknowledged. Beyond: new ones are refused with 429.
    package static let ingestRequests = 256
    package static let ingestWaitingBytes = 64 << 20
    /// Refused objects that one answer in JSON names; the others are only counted.
    package static let ingestNamedRefusals = 1_000
    /// Hours that the answer to a request with an Idempotency-Key is kept.
    package static let idempotencyHours = 24
    /// Objects, and writes, that were refused and that are kept for operators, counted by their numbers. Beyond: the oldest of those that
    /// have been told go.
    package static let keptRefusals = 1_000_000
    /// Objects of one client file whose undone writes it has not noted. Beyond: its session ends with `resync` before it writes more.
    package static let untoldObjects = 100_000
    /// Bytes of values of undone writes that are read and sent at once to a client that comes back.
    package static let compensationBytes = 4 << 20
    /// Uploads of one session that are accepted and not yet committed, bytes. Beyond: reading from the socket stops.
    package static let uploadBytes = 32 << 20
    /// How far ahead of the gateway's clock a client's time may be, milliseconds (CR-30).
    package static let clockSkewMilliseconds: Int64 = 300_000
    /// Days without a session after which a client's position no longer keeps what merging remembers for it. Beyond: its writes count as
    /// written with knowledge of what is forgotten.
    package static let clientMemoryDays = 60
    /// Processor time that a plugin may use for a call of a session's hook, and for each write or object of the others, nanoseconds,
    /// and for how long it may sleep, unless the plugin's configuration says otherwise. Beyond: the host is replaced, the call denied.
    package static let pluginSessionNanoseconds: UInt64 = 50_000_000
    package static let pluginWriteNanoseconds: UInt64 = 5_000_000
    /// How long by the clock a plugin may be at one call beyond its processor time, nanoseconds. Beyond: the same.
    package static let pluginStallNanoseconds: UInt64 = 2_000_000_000
    /// How long a call may wait for its answer beyond the processor time of its own, nanoseconds. Beyond: it is denied.
    package static let pluginWaitNanoseconds: UInt64 = 10_000_000_000
    /// Wrong passwords for one account from one address: at once, and regained per hour, as in the following. Beyond: 429.
    package static let loginPairFailures = (atOnce: 10, perHour: 120)
    /// Wrong passwords from one address (IPv6: one /64) for all accounts. Beyond: 429, except for accounts that have logged in from it.
    package static let loginAddressFailures = (atOnce: 20, perHour: 1_200)
    /// Wrong passwords for one account from all addresses. Beyond: `loginGuardedFailures` holds, too.
    package static let loginAccountFailures = (atOnce: 100, perHour: 100)
    /// Wrong passwords for a guarded account from one address that has not logged in to it. Beyond: 429.
    package static let loginGuardedFailures = (atOnce: 1, perHour: 4)
    /// Wrong API keys, registrations, and anonymous logins from one address. Beyond: 429.
    package static let apiKeyFailures = (atOnce: 20, perHour: 1_200)
    package static let registrations = (atOnce: 20, perHour: 1_200)
    package static let anonymousLogins = (atOnce: 60, perHour: 3_600)
    /// Logins by password from one address that are being checked. Beyond: 429.
    package static let loginsAtOnce = 64
    /// Names that each limit of logins remembers in a generation, of two. Beyond: the older generation is forgotten.
    package static let loginNames = 10_000
    /// Characters of an admin token. Fewer: `configInvalid` at the start.
    package static let adminTokenCharacters = 32...512
    /// Admin tokens of one gateway. Beyond: `configInvalid` at the start.
    package static let adminTokens = 100
    /// Seconds that a login to the console lasts.
    package static let consoleSessionSeconds: Int64 = 12 * 3_600
    /// Logins to the console that are open. Beyond: the oldest end.
    package static let consoleSessions = 100
    /// Entries of the audit log that are kept. Beyond: the oldest are deleted.
    package static let auditEntries = 100_000
    /// One value in the audit log, bytes of JSON. Beyond: its size stands in its place.
    package static let auditValueBytes = 32 << 10
}
