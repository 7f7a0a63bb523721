package import HTTPTypes
package import SluiceCore

extension ErrorCode {
    /// The HTTP status of a response with this error.
    package var httpStatus: HTTPResponse.Status {
        switch self {
        case .badRequest, .badSyntax, .badJSON, .badCompression, .badMessageOrder, .unknownMessage, .wrongProtocolVersion,
            .badChangeset, .ingestMalformed, .wrongValueType, .unknownProperty, .invalidName, .invalidEmail, .configInvalid,
            .configUnknownKey, .configMissing, .userAlreadyConfirmed, .functionFailed:
            .badRequest
        case .invalidPassword, .tokenExpired, .badAuthentication, .invalidSession, .userDisabled, .adminUnauthorized, .userNotConfirmed,
            .loginTokenRejected:
            .unauthorized
        case .permissionDenied, .writeNotAllowed, .ingestRejected, .pluginRefused, .crossSiteRequest, .adminForbidden, .functionRefused:
            .forbidden
        case .userNotFound, .apiKeyNotFound, .unknownType, .ingestUnknownType, .providerDisabled, .functionNotFound: .notFound
        case .nameInUse, .userMismatch, .idempotencyKeyInUse, .identityInUse: .conflict
        case .bodyTooLarge, .limitsExceeded, .ingestTooLarge, .logRecordTooLarge, .helloTooLarge: .contentTooLarge
        case .requestTimeout, .helloTimeout: .requestTimeout
        case .unsupportedEncoding: .unsupportedMediaType
        case .tooManyRequests, .tooManyConnections, .logFull: .tooManyRequests
        case .shuttingDown, .sessionDisabled, .postgresUnreachable, .logUnreachable, .pluginUnavailable, .logDelivery,
            .functionUnavailable, .outboundFailed, .outboundAddressRefused, .outboundTooLarge, .mailFailed:
            .serviceUnavailable
        case .timeout, .pluginTimeout, .functionTimeout, .outboundTimeout: .gatewayTimeout
        default: .internalServerError
        }
    }

    /// The name in `error_code`. Uses one of App Services' names where it fits, because client libraries have typed errors for those.
    ///
    /// Other names, such as `TooManyRequests`, reach an app of Realm's SDKs as an untyped error with the same text.
    package var appServicesName: String {
        switch self {
        case .invalidPassword: "InvalidPassword"
        case .badAuthentication, .tokenExpired, .userNotConfirmed, .loginTokenRejected: "AuthError"
        case .invalidSession: "InvalidSession"
        case .userNotFound: "UserNotFound"
        case .userDisabled: "UserDisabled"
        case .nameInUse, .identityInUse: "AccountNameInUse"
        case .userAlreadyConfirmed: "UserAlreadyConfirmed"
        case .functionNotFound: "FunctionNotFound"
        case .functionRefused: "NoMatchingRuleFound"
        case .functionFailed, .functionUnavailable: "FunctionExecutionError"
        case .providerDisabled: "AuthProviderNotFound"
        case .apiKeyNotFound: "APIKeyNotFound"
        case .crossSiteRequest: "DomainNotAllowed"
        case .badRequest, .badJSON, .invalidEmail, .bodyTooLarge, .limitsExceeded, .requestTimeout: "BadRequest"
        case .tooManyRequests, .tooManyConnections: "TooManyRequests"
        case .permissionDenied: "Restricted"
        case .internalError, .postgresStatement, .outboundFailed, .outboundAddressRefused, .outboundTooLarge, .mailFailed:
            "InternalServerError"
        case .shuttingDown, .postgresUnreachable: "MaintenanceInProgress"
        case .timeout, .functionTimeout, .outboundTimeout: "ExecutionTimeLimitExceeded"
        default: name
        }
    }
}
