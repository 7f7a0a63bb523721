/// The change after which failed work may succeed.
package enum ErrorRecovery: CaseIterable, Sendable {
    /// None: the condition ends by itself. A part restarts, a queue drains, a connection comes back.
    case wait
    /// A repair of the gateway, its database, change log, plugins or configuration, or of the device.
    case repair
    /// Another input of the caller, or other rights.
    case changeInput
    /// A correction of the app. It contradicts the protocol, the schema or the rules in a way that ends its session.
    case changeApp
    /// A new access token.
    case refreshToken
    /// A login of the user.
    case logIn
    /// A new client replica, into which unsent writes are recovered.
    case resetReplica
    /// A new client replica. The unsent writes belong to another user, and must not be sent in this one's name.
    case resetReplicaWithoutRecovery

    /// One sentence for a page of errors.
    package var advice: String {
        switch self {
        case .wait: "The condition ends by itself; retry with a back-off."
        case .repair: "The same work may succeed after a repair."
        case .changeInput: "The same work fails again until its input or the rights change."
        case .changeApp: "The same work fails again until the app or the schema changes."
        case .refreshToken: "Retry with a new access token."
        case .logIn: "Retry after a login."
        case .resetReplica, .resetReplicaWithoutRecovery: "Retry with a new local file."
        }
    }
}

/// The one table that decides whether a retry can help. Session actions, `Retry-After` and the loops that retry follow from it, and the
/// states of PostgreSQL below from its cases.
extension ErrorCode {
    /// The change after which the failed work may succeed. The switch has no default, so the compiler requires an entry for a new code.
    package var recovery: ErrorRecovery {
        switch self {
        case .helloTimeout, .tooManyConnections, .slowClient, .resync, .shuttingDown, .tooManyRequests, .pluginCrashed, .pluginTimeout,
            .pluginBadAnswer, .pluginUnavailable, .pluginFailed, .postgresUnreachable, .slotBusy, .logUnreachable, .logGap, .logDelivery,
            .logFull, .connectionFailed, .timeout, .functionUnavailable, .functionTimeout, .outboundFailed, .outboundTimeout, .mailFailed:
            .wait
        case .internalError, .sessionDisabled, .pluginMissing, .pluginABIMismatch, .pluginUnlisted, .pluginAltered, .pluginUnfit,
            .postgresStatement, .postgresSetting, .slotLost, .tableUnfit, .logTopic, .logReplicas, .logNotAuthorized, .portInUse,
            .breakingSchemaChange, .logAhead, .adminTokenMissing, .columnRefusesInserts, .foreignKeyCircle, .grantMissing,
            .replicaCorrupt, .replicaVersion, .deviceFull, .tlsHandshakeFailed, .outboundAddressRefused, .outboundTooLarge,
            .serverKeyMismatch:
            .repair
        case .writeNotAllowed, .compensatingWrite, .badRequest, .invalidPassword, .crossSiteRequest, .userNotFound, .requestTimeout,
            .nameInUse, .bodyTooLarge, .unsupportedEncoding, .badJSON, .badCompression, .providerDisabled, .idempotencyKeyInUse,
            .apiKeyNotFound, .adminUnauthorized, .adminForbidden, .invalidEmail, .pluginRefused, .logRecordTooLarge, .ingestRejected,
            .ingestMalformed, .ingestUnknownType, .ingestTooLarge, .configUnknownKey, .configInvalid, .configMissing,
            .noSubscriptionForWrite, .writeTooLarge, .userNotConfirmed, .userAlreadyConfirmed, .loginTokenRejected, .identityInUse,
            .functionNotFound, .functionRefused, .functionFailed:
            .changeInput
        case .querySyntax, .queryUnknownProperty, .queryTypeMismatch, .queryArgument, .queryShape, .queryNotQueryable, .queryUnsupported,
            .queryIndexedFieldMissing, .queryAsymmetric, .queryTooLarge, .querySubscribedTypeUnknown, .queryAggregate, .queryCount,
            .querySort, .queryDistinct, .queryLimit, .queryTwoLists, .queryLinkPath, .queryBacklinks, .querySubquery, .queryGeospatial,
            .queryFullText, .queryArithmetic, .queryTwoFields, .queryValueType, .queryElement, .queryLinkValue, .queryPathArgument,
            .queryEmbedded:
            .changeInput
        case .unknownMessage, .badSyntax, .limitsExceeded, .helloTooLarge, .wrongProtocolVersion, .badMessageOrder, .badChangeset,
            .invalidSchemaChange, .unknownType, .unknownProperty, .wrongValueType, .invalidName, .permissionDenied:
            .changeApp
        case .tokenExpired: .refreshToken
        case .badAuthentication, .userDisabled, .invalidSession: .logIn
        case .badClientFile: .resetReplica
        case .userMismatch: .resetReplicaWithoutRecovery
        }
    }

    /// `true` if the condition ends by itself, so that a retry with a back-off is the remedy.
    package var isTemporary: Bool { recovery == .wait }

    /// `true` if the same work may succeed later: the condition ends by itself, or after a repair that is not the caller's.
    package var isRetriable: Bool { recovery == .wait || recovery == .repair }

    /// `true` if the error fails one version of the subscription set, and the session stays open.
    package var isQueryError: Bool { (300..<400).contains(rawValue) }

    /// `true` if a plugin gave no answer and may give one later.
    package var isPluginFailure: Bool { isTemporary && (500..<600).contains(rawValue) }

    /// `true` if PostgreSQL gave no answer and may give one later.
    package var isPostgresFailure: Bool { self == .postgresUnreachable || self == .timeout }
}

extension ErrorRecovery {
    /// The change after which a statement may succeed that PostgreSQL ended with this SQLSTATE; nil if the error's code decides.
    ///
    /// Class 40 is a serialization failure or a deadlock, 08 the connection, 53 a lack of resources, 57P a server that shuts down or
    /// starts, and 55P03 a lock that is not available. The work must be repeated from its start, on a new connection if this one broke.
    package init?(sqlState: String) {
        let temporary = ["40", "08", "53", "57P", "55P03"]
        guard temporary.contains(where: { sqlState.hasPrefix($0) }) else { return nil }
        self = .wait
    }
}
