/// The table of all error codes. `dev/generate-errors` prints docs/errors.md from it.
///
/// The ranges are:
/// - 1xx: connection.
/// - 2xx: session, with Device Sync's numbers and names where it had one.
/// - 3xx: query language, one code for each cause of Device Sync's 226.
/// - 4xx: HTTP and users; 5xx: plugins; 6xx: PostgreSQL; 7xx: change log; 8xx: ingest; 9xx: configuration.
package enum ErrorCode: UInt16, CaseIterable, Sendable {
    // Connection
    case unknownMessage = 102
    case badSyntax = 103
    case limitsExceeded = 104
    case wrongProtocolVersion = 105
    case helloTimeout = 106
    case tooManyConnections = 107
    case helloTooLarge = 108
    case badMessageOrder = 109

    // Session
    case internalError = 201
    case tokenExpired = 202
    case badAuthentication = 203
    case permissionDenied = 206
    case badClientFile = 208
    case badChangeset = 212
    case sessionDisabled = 213
    case userDisabled = 220
    case userMismatch = 223
    case invalidSchemaChange = 225
    case writeNotAllowed = 230
    case compensatingWrite = 231
    case slowClient = 250
    case resync = 251
    case shuttingDown = 252
    case unknownType = 253
    case unknownProperty = 254
    case wrongValueType = 255
    case invalidName = 256

    // Query language
    case querySyntax = 300
    case queryUnknownProperty = 301
    case queryTypeMismatch = 302
    case queryArgument = 303
    case queryShape = 304
    case queryNotQueryable = 310
    case queryUnsupported = 311
    case queryIndexedFieldMissing = 312
    case queryAsymmetric = 313
    case queryTooLarge = 314
    case querySubscribedTypeUnknown = 315

    // Constructs of the query language that subscriptions do not support, one code each
    case queryAggregate = 320
    case queryCount = 321
    case querySort = 322
    case queryDistinct = 323
    case queryLimit = 324
    case queryTwoLists = 325
    case queryLinkPath = 326
    case queryBacklinks = 327
    case querySubquery = 328
    case queryGeospatial = 329
    case queryFullText = 330
    case queryArithmetic = 331
    case queryTwoFields = 332
    case queryValueType = 333
    case queryElement = 334
    case queryLinkValue = 335
    case queryPathArgument = 336
    case queryEmbedded = 337

    // HTTP and users
    case badRequest = 400
    case invalidPassword = 401
    case crossSiteRequest = 403
    case userNotFound = 404
    case requestTimeout = 408
    case nameInUse = 409
    case bodyTooLarge = 413
    case unsupportedEncoding = 415
    case badJSON = 422
    case badCompression = 423
    case tooManyRequests = 429
    case providerDisabled = 440
    case invalidSession = 441
    case idempotencyKeyInUse = 442
    case apiKeyNotFound = 443
    case adminUnauthorized = 446
    case adminForbidden = 447
    case invalidEmail = 448
    case userNotConfirmed = 450
    case userAlreadyConfirmed = 451
    case loginTokenRejected = 452
    case identityInUse = 453
    case functionNotFound = 454
    case functionRefused = 455
    case functionFailed = 456
    case functionUnavailable = 457
    case functionTimeout = 458

    // Requests of the gateway to other services
    case outboundFailed = 470
    case outboundTimeout = 471
    case outboundAddressRefused = 472
    case mailFailed = 473
    case outboundTooLarge = 474

    // Plugins
    case pluginMissing = 500
    case pluginABIMismatch = 501
    case pluginCrashed = 502
    case pluginTimeout = 503
    case pluginRefused = 504
    case pluginBadAnswer = 505
    case pluginUnavailable = 506
    case pluginUnlisted = 507
    case pluginAltered = 508
    case pluginUnfit = 509
    case pluginFailed = 510

    // PostgreSQL
    case postgresUnreachable = 600
    case postgresStatement = 601
    case postgresSetting = 602
    case slotLost = 610
    case slotBusy = 611
    case tableUnfit = 620

    // The change log
    case logUnreachable = 700
    case logTopic = 701
    case logGap = 702
    case logDelivery = 703
    case logFull = 704
    case logRecordTooLarge = 705
    case logReplicas = 706
    case logNotAuthorized = 707

    // Ingest
    case ingestRejected = 800
    case ingestMalformed = 801
    case ingestUnknownType = 802
    case ingestTooLarge = 803

    // Configuration
    case configUnknownKey = 900
    case configInvalid = 901
    case configMissing = 902
    case portInUse = 903
    case breakingSchemaChange = 904
    case logAhead = 905
    case adminTokenMissing = 906
    case columnRefusesInserts = 907
    case foreignKeyCircle = 908
    case grantMissing = 909

    // The client
    case replicaCorrupt = 950
    case replicaVersion = 951
    case noSubscriptionForWrite = 952
    case connectionFailed = 953
    case timeout = 954
    case deviceFull = 955
    case tlsHandshakeFailed = 956
    case writeTooLarge = 957
    case serverKeyMismatch = 958

    /// The name in kebab-case, the form in logs, metrics and JSON.
    package var name: String { ErrorCode.kebab("\(self)") }

    /// `true` if the text is a valid query that is not permitted as a subscription.
    package var refusesSubscription: Bool { (310..<350).contains(rawValue) }

    /// The general fix.
    package var fix: String { advice.fix }

    /// The meaning, in one sentence.
    package var meaning: String { advice.meaning }

    /// Returns `badJSON` as `bad-json`, `pluginABIMismatch` as `plugin-abi-mismatch`.
    private static func kebab(_ identifier: String) -> String {
        let characters = Array(identifier)
        var words = ""
        for (index, character) in characters.enumerated() {
            let followsLower = index > 0 && !characters[index - 1].isUppercase
            let endsCapitals = index > 0 && index + 1 < characters.count && !characters[index + 1].isUppercase
            if character.isUppercase, followsLower || endsCapitals { words.append("-") }
            words.append(character.lowercased())
        }
        return words
    }
}
