import Crypto
package import SluiceCore
package import SluicePorts
package import SluiceValues

/// A call as the service behind a function receives it. docs/functions.md describes the form.
package struct WebhookMessage: Sendable {
    package static let signatureHeader = "Sluice-Signature"
    package static let requestHeader = "Sluice-Request-Id"

    private let id: String
    private let body: [UInt8]

    /// - Parameter id: The id of the call, which all attempts share.
    package init(_ call: FunctionCall, of function: AppFunction, app: String, id: String) {
        self.id = id
        let user = call.user
        let json: JSON = [
            "function": .string(function.name), "arguments": .array(call.arguments), "user": user?.json ?? .null,
            "run_as": .string(function.identity.name(caller: user?.id)), "app": .string(app), "request_id": .string(id),
        ]
        body = json.utf8
    }

    /// Returns the request, signed for a time.
    ///
    /// - Parameters:
    ///   - seconds: The time of the request, in seconds since 1970. The service refuses old ones.
    ///   - milliseconds: The time for the request.
    package func request(to target: WebhookTarget, key: [UInt8], seconds: Int64, milliseconds: Int) -> OutboundRequest {
        OutboundRequest(
            .post, target.url,
            headers: [
                .init("Content-Type", "application/json"), .init("User-Agent", "sluice"), .init(Self.requestHeader, id),
                .init(Self.signatureHeader, Self.signature(of: body, key: key, seconds: seconds)),
            ],
            body: body, milliseconds: milliseconds, answerBytes: target.answerBytes, allowsPrivateAddresses: target.allowsPrivateAddresses)
    }

    /// Returns the signature: the HMAC-SHA-256 of the time, a full stop and the body, by the key.
    package static func signature(of body: [UInt8], key: [UInt8], seconds: Int64) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array("\(seconds).".utf8) + body, using: SymmetricKey(data: key))
        return "t=\(seconds),v1=\(Hex.encode(code))"
    }
}

extension AppFunction.Identity {
    /// Returns the id of the user whose rights the function has, or `system`.
    func name(caller: String?) -> String {
        switch self {
        case .caller: caller ?? "system"
        case .system: "system"
        case .user(let id): id
        }
    }
}

extension FunctionCall {
    /// The user of the call; nil if the gateway itself calls.
    var user: UserContext? {
        switch caller {
        case .user(let user), .rules(let user): user
        case .system: nil
        }
    }
}

extension UserContext {
    /// The user as services receive it.
    package var json: JSON {
        [
            "id": .string(id), "type": .string(type), "data": data, "custom_data": customData, "identities": identities,
        ]
    }
}

extension OutboundAnswer {
    /// `true` for an answer of a proxy whose service is away: 502, 503 or 504 (RFC 9110, section 15.6).
    var isFromGateway: Bool { (502...504).contains(status) }
}

/// The answer of the service behind a function.
package enum WebhookAnswer {
    /// The maximum length of an error's text, in Unicode scalars. The rest is cut.
    static let messageLength = 2_000

    /// Returns the result of a call.
    ///
    /// - Throws: `functionFailed` with the text of the function's error; `functionUnavailable` for a status that another attempt may
    ///   overcome.
    package static func result(of answer: OutboundAnswer, function: String) throws(SluiceError) -> JSON {
        guard answer.isSuccess else { throw failure(answer, function) }
        let json: JSON
        do throws(SluiceError) { json = try JSON.parse(answer.body) } catch {
            throw SluiceError(
                .functionFailed, "The function '\(function)' did not answer with JSON.", cause: .error(error))
        }
        if let error = json["error"] {
            throw Self.error(error["message"]?.string ?? error.string, of: function)
        }
        guard let result = json["result"] else {
            throw SluiceError(
                .functionFailed, "The function '\(function)' answered without 'result' and 'error'.",
                fix: #"Let its service answer with {"result": …}."#)
        }
        return result
    }

    /// Returns a function's own error.
    static func error(_ text: String?, of function: String) -> SluiceError {
        SluiceError(.functionFailed, String((text ?? "The function '\(function)' failed.").unicodeScalars.prefix(messageLength)))
    }

    private static func failure(_ answer: OutboundAnswer, _ function: String) -> SluiceError {
        let isTemporary = answer.status >= 500 || [408, 425, 429].contains(answer.status)
        return SluiceError(
            isTemporary ? .functionUnavailable : .functionFailed,
            "The service of the function '\(function)' answered with status \(answer.status).")
    }
}
