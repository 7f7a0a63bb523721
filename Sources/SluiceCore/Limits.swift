/// Every bound of the product, with its unit and the consequence of exceeding it. docs/limits.md describes them.
package enum Limits {
    /// One WebSocket message from a client, bytes. Beyond: error `limits-exceeded`, close 1009.
    package static let messageBytes = 16 << 20
    /// Messages and frames of a peer before authentication, bytes. Beyond: error `hello-too-large`, close 1009.
    package static let openingBytes = 64 << 10
    /// Seconds from a connection's first byte to its first request or complete Hello. Beyond: the connection is closed, a WebSocket with
    /// `hello-timeout`.
    package static let openingSeconds: Int64 = 10
    /// Seconds from a signal to the end of the gateway's process. Beyond: the rest of its work is cut off, with a line in the log.
    package static let graceSeconds = 25
    /// The values of `--grace-seconds`. Out of range: `config-invalid`.
    package static let graceRange = 1...600
    /// Classes in one Hello and in its values, and properties of all classes. Beyond: `limits-exceeded`.
    package static let helloClasses = 4_096
    package static let helloProperties = 65_536
    /// Connections of a server, and those of them before authentication. The rest is a reserve for sessions. Beyond: the oldest connection
    /// before authentication is closed, or the new one if there is none.
    package static let connections = 12_000
    package static let unauthenticatedConnections = 4_000
    /// Connections from one address (IPv4) or /64 network (IPv6), and those of them before authentication. Beyond: closed when accepted, or
    /// `too-many-connections` behind a proxy.
    package static let connectionsPerAddress = 4_000
    package static let unauthenticatedPerAddress = 1_000
    /// Requests from one address in a second, and in a burst. Beyond: 429 `too-many-requests`.
    package static let requestsPerSecond = 500
    package static let requestBurst = 2_000
    /// Counted addresses per generation of two. Beyond: the least recently used are forgotten.
    package static let countedAddresses = 10_000
    /// The minimum rate of a request's body in bytes a second, and the seconds that it may be behind. Then the seconds for the whole body,
    /// without and with an authenticated sender. Time in which the gateway does not read does not count. Beyond: 408 `request-timeout`.
    package static let bodyBytesPerSecond = 32
    package static let bodyGraceSeconds: Int64 = 20
    package static let bodySeconds: Int64 = 60
    package static let provenBodySeconds: Int64 = 6 * 3_600
    /// One subscription, and one whole set, bytes of query text. Beyond: query error `query-too-large`.
    package static let queryBytes = 256 << 10
    /// The name of a class, bytes. It also names a table and a topic. Beyond: `invalid-name`.
    package static let classNameBytes = 57
    /// The name of a property, bytes. PostgreSQL truncates longer column names. Beyond, in development mode: `invalid-name`.
    package static let propertyNameBytes = 63
    /// A column's name in the mapping of an app directory, bytes. PostgreSQL truncates longer ones. Beyond: `config-invalid`.
    package static let columnNameBytes = 63
    /// A user's e-mail address, bytes in normal form. Beyond: `invalid-email`.
    package static let emailBytes = 320
    /// Nesting of containers, queries and JSON. Beyond: malformed.
    package static let nestingDepth = 100
    /// Leaves (comparisons) of one query. Beyond: query error `query-too-large`.
    package static let queryLeaves = 4_096
    /// Values in one IN list. Beyond: query error `query-too-large`.
    package static let inListValues = 10_000
    /// Values in all lists of one query. A list argument counts each time it is used. Beyond: query error `query-too-large`.
    package static let queryListValues = 65_536
    /// Sort keys and DISTINCT paths of one subscription with a limit, and the links of one of these paths. Each link costs PostgreSQL a
    /// join in every search of the objects. Beyond: query error `query-too-large`.
    package static let orderKeys = 32
    package static let orderLinks = 4
    /// Sessions of one user on a gateway. Beyond: the session ends with `too-many-requests`, and the client retries.
    package static let userSessions = 1_000
    /// Client replicas of one user, and those of Realm's protocol. Beyond: the one that was used least recently gives way, and its device
    /// performs a client reset if it returns.
    package static let userReplicas = 5_000
    /// Seconds without use after which a replica may give way. If all were used since, a new replica is rejected: `too-many-requests`.
    package static let replicaIdleSeconds: Int64 = 7_200
    /// Changes of a session's subscriptions at once, and the same again each minute. Beyond: they wait.
    package static let subscriptionChanges = 300
    /// Queries of a subscription set. Beyond: query error `query-too-large`.
    package static let setQueries = 10_000
    /// The values that are kept of a rejected write, in bytes, and of all rejected writes of a user, at once and again each minute. Beyond:
    /// they are left out.
    package static let refusedValueBytes = 64 << 10
    package static let refusedUserBytes = 1 << 20
    /// Paths of included links of one subscription and of a set, and the links of one path. Each link costs a read of the database whenever
    /// its objects change. Beyond: query error `query-too-large`.
    package static let includePaths = 100
    package static let setIncludePaths = 2_000
    package static let includeLinks = 8
    /// Vertices of all polygons of one query; a box or circle counts as four. Each costs the angle of an arc for every row. Binding costs
    /// one for every pair of vertices of a hole and its polygon. Beyond: query error `query-too-large`.
    package static let shapeVertices = 1_024
    /// One pattern of LIKE or CONTAINS, and all of one query, bytes. Testing a text of n bytes costs up to n times the pattern. Beyond:
    /// query error `query-too-large`.
    package static let patternBytes = 1_024
    package static let queryPatternBytes = 8_192
    /// Bytes in the send queue of one client. Beyond: the session ends with `slow-client`, and the client returns by bootstrap.
    package static let outboxBytes = 16 << 20
    /// The bytes that a slow client must read in each period, and the period in seconds.
    package static let unreadBytes = 64 << 10
    package static let unreadSeconds: UInt64 = 30
    /// Bytes of a bootstrap that are held back to be sent with its end. Beyond: they are sent at once.
    package static let joinedBootstrapBytes = 32 << 10
    /// Bytes of changes staged for one session during its bootstrap. Beyond: the bootstrap restarts.
    package static let stagedBytes = 32 << 20
    /// One object in the change log, bytes. A record has its images before and after. A topic with a smaller record limit lowers it
    /// (`RowBound`). Beyond: a client's write is rejected, and a row that another program wrote is quarantined.
    package static let rowBytes = 9 << 20
    /// A record's bytes beside the two images: positions, keys, names, and the frames of the batch.
    package static let recordFrameBytes = 64 << 10
    /// The Kafka key of a record, bytes. Beyond: the record has no key. Its partition remains the same.
    package static let recordKeyBytes = 1 << 10
    /// Objects whose write times a client may request in one Subscribe. Beyond: error `limits-exceeded`. The SDK requests the first ones.
    package static let pendingObjects = 4_096
    /// Rows, and bytes, of one bootstrap message.
    package static let bootstrapRows = 2_000
    package static let bootstrapBytes = 256 << 10
    /// Changes, and bytes, of one batch read from the WAL.
    package static let captureBatchChanges = 4_096
    package static let captureBatchBytes = 4 << 20
    /// Bytes of changes read from the change log and not yet below the watermark. Beyond: a partition's changes are dropped, and its
    /// sessions resynchronise by bootstrap once the watermark passes them.
    package static let feedBytes = 64 << 20
    /// Bytes of changes below the watermark kept in memory for sessions that return. Beyond: the oldest are evicted, and a session that
    /// lacks them reads the change log.
    package static let recentBytes = 32 << 20
    /// Seconds for which a partition without sessions is still read, for sessions that return.
    package static let feedLingerSeconds: UInt64 = 60
    /// Objects, and bytes, of one transaction of ingested objects. The same bytes bound one Ingest message of the SDK.
    package static let ingestBatchObjects = 4_000
    package static let ingestBatchBytes = 4 << 20
    /// Objects of one call of the ingest rules, and of one Ingest message.
    package static let ingestRulesObjects = 1_000
    /// Unacknowledged Ingest messages of a client replica. Beyond: the SDK waits before it sends the next, and the gateway before it
    /// processes it. The gateway keeps as many acknowledgements of a replica that report rejected objects.
    package static let ingestWindow = 4
    /// One record of the dead-letter topic, bytes: the brokers' default limit. Beyond: the object in it is cut.
    package static let deadLetterBytes = 1_000_000
    /// One asymmetric object as JSON, bytes, equal to `rowBytes`. Beyond: rejected, by the SDK when it is written.
    package static let ingestObjectBytes = 9 << 20
    /// Objects, and bytes, of one HTTP request that are passed on at a time. Further pieces of its body are read after their
    /// acknowledgement.
    package static let ingestPieceObjects = 1_000
    package static let ingestPieceBytes = 512 << 10
    /// Concurrent HTTP ingest requests, and their unacknowledged bytes. Beyond: new requests receive 429.
    package static let ingestRequests = 256
    package static let ingestWaitingBytes = 64 << 20
    /// Rejected objects that one JSON answer names. The others are only counted.
    package static let ingestNamedRefusals = 1_000
    /// Hours for which the answer to a request with an Idempotency-Key is kept.
    package static let idempotencyHours = 24
    /// Rejected objects, and rejected writes, kept for operators, counted by their numbers. Beyond: the oldest that have been reported are
    /// deleted.
    package static let keptRefusals = 1_000_000
    /// Bytes of the values of all rejected writes that are kept, compressed. Beyond: the oldest writes lose their values.
    package static let keptRefusalBytes = 4 << 30
    /// Undone writes that one error report of a device names. Beyond: they are left out.
    package static let reportedWrites = 16
    /// Parts of one message from the gateway to the SDK: rows, keys, changes, classes, properties, rejected writes and values. Beyond: the
    /// SDK ends the session with `limits-exceeded`.
    package static let serverParts = 1 << 18
    /// Bytes in memory of the rows of such a message. Beyond: the same.
    package static let decodedBytes = 256 << 20
    /// Objects of one client replica with unacknowledged compensating writes. Beyond: its session ends with `resync` before it writes more.
    package static let untoldObjects = 100_000
    /// Bytes of compensating writes that are read and sent at once to a returning client.
    package static let compensationBytes = 4 << 20
    /// Bytes of one session's uploads that are accepted and not yet committed. Beyond: reading from the socket stops.
    package static let uploadBytes = 32 << 20
    /// Milliseconds that a client's time may be ahead of the gateway's clock.
    package static let clockSkewMilliseconds: Int64 = 300_000
    /// Days without a session after which a client's position no longer retains merge history. Beyond: its writes merge as if the client
    /// had known the forgotten history.
    package static let clientMemoryDays = 60
    /// Nanoseconds of processor time, and as many of sleep, for a session hook's call, and for each write or object of other hooks. A
    /// plugin's configuration may override them. Beyond: the host is replaced and the call denied.
    package static let pluginSessionNanoseconds: UInt64 = 50_000_000
    package static let pluginWriteNanoseconds: UInt64 = 5_000_000
    /// Nanoseconds of wall-clock time that a plugin's call may take beyond its processor time. Beyond: the host is replaced and the call
    /// denied.
    package static let pluginStallNanoseconds: UInt64 = 2_000_000_000
    /// Nanoseconds that a call may wait for its answer beyond its own processor time. Beyond: it is denied.
    package static let pluginWaitNanoseconds: UInt64 = 10_000_000_000
    /// Wrong passwords for one account from one address: at once, and regained per hour. The following limits have the same form. Beyond:
    /// 429.
    package static let loginPairFailures = (atOnce: 10, perHour: 120)
    /// Wrong passwords from one address (IPv6: one /64) for all accounts. Beyond: 429, except for accounts that have logged in from it.
    package static let loginAddressFailures = (atOnce: 20, perHour: 1_200)
    /// Wrong passwords for one account from all addresses. Beyond: the account is guarded, and `loginGuardedFailures` also applies.
    package static let loginAccountFailures = (atOnce: 100, perHour: 100)
    /// Wrong passwords for a guarded account from one address that has not logged in to it. Beyond: 429.
    package static let loginGuardedFailures = (atOnce: 1, perHour: 4)
    /// Wrong API keys or links to set a password, registrations, and anonymous logins from one address. Beyond: 429.
    package static let apiKeyFailures = (atOnce: 20, perHour: 1_200)
    package static let registrations = (atOnce: 20, perHour: 1_200)
    package static let anonymousLogins = (atOnce: 60, perHour: 3_600)
    /// Registrations, and anonymous logins, from one address in a day: at once, and regained per hour. Beyond: 429.
    package static let dailyAccounts = (atOnce: 2_400, perHour: 100)
    /// Days after which an anonymous account that is not used, or a registration without a login, is deleted.
    package static let idleAccountDays = 90
    /// Logins of one user. Beyond: the oldest one ends.
    package static let userLogins = 5_000
    /// Mails to one e-mail address that one network address requests, and calls of its confirmation or reset function. Beyond: 429.
    package static let mailPairs = (atOnce: 5, perHour: 12)
    /// The same from one network address for all e-mail addresses. Beyond: 429.
    package static let mailsFromAddress = (atOnce: 20, perHour: 120)
    /// The same for one e-mail address from all network addresses. Beyond: each network address has `mailsGuarded` for it.
    package static let mailsOfAccount = (atOnce: 10, perHour: 20)
    package static let mailsGuarded = (atOnce: 1, perHour: 2)
    /// Seconds for which the link of a mail is valid. Beyond: `UserpassTokenInvalid`.
    package static let linkSeconds: Int64 = 30 * 60
    /// Seconds for which a user may be pending. Beyond: the registration is deleted.
    package static let pendingUserSeconds: Int64 = 7 * 86_400
    /// The minimum length of passwords that an app may set, in characters. Beyond: `config-invalid`.
    package static let minimumPasswordCharacters = 6...64
    /// The file of passwords that are refused, bytes. Beyond: `config-invalid` at the start.
    package static let refusedPasswordBytes = 256 << 20
    /// The address of a mail, bytes (RFC 5321). Beyond: `invalid-email`.
    package static let mailAddressBytes = 254
    /// The subject of a mail, characters. Beyond: `config-invalid`.
    package static let mailSubjectCharacters = 256
    /// The template of a mail, bytes. Beyond: `config-invalid`.
    package static let mailTemplateBytes = 32 << 10
    /// Mails that wait for the mail server. Beyond: a new one is dropped.
    package static let waitingMails = 1_000
    /// Seconds for which a mail waits for the mail server. Beyond: it is dropped, as its link would soon be invalid.
    package static let mailPatienceSeconds: UInt64 = 20 * 60
    /// Seconds for the connection to the mail server, and for a whole attempt to send a mail. Beyond: the mail is sent again later.
    package static let mailConnectSeconds = 10
    package static let mailAttemptSeconds = 30
    /// Concurrent password checks for one address. Beyond: 429.
    package static let loginsAtOnce = 64
    /// Names that each login limit remembers per generation, of two. Beyond: the older generation is forgotten.
    package static let loginNames = 10_000
    /// Characters of an admin token. Out of range: `configInvalid` at the start.
    package static let adminTokenCharacters = 32...512
    /// Admin tokens of one gateway. Beyond: `configInvalid` at the start.
    package static let adminTokens = 100
    /// Seconds for which a login to the console is valid.
    package static let consoleSessionSeconds: Int64 = 12 * 3_600
    /// Open logins to the console. Beyond: the oldest end.
    package static let consoleSessions = 100
    /// Entries kept in the audit log. Beyond: the oldest are deleted.
    package static let auditEntries = 100_000
    /// One value in the audit log, bytes of JSON. Beyond: its size replaces it.
    package static let auditValueBytes = 32 << 10
}
