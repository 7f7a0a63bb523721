package import SluiceCore

/// A request of the gateway to another service, such as a key set or a webhook.
package struct OutboundRequest: Hashable, Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var method: Method
    /// An address with `https`, or with `http` for a service of the same machine or network.
    package var url: String
    package var headers: [Header]
    package var body: [UInt8]
    /// The time for the request with its answer, in milliseconds.
    package var milliseconds: Int
    /// The largest body of an answer, in bytes.
    package var answerBytes: Int
    /// `true` if the service may have a loopback, private or link-local address. Only a file of the operator can permit it: a stranger who
    /// chooses an address would otherwise reach the gateway's network.
    package var allowsPrivateAddresses: Bool

    package init(
        _ method: Method, _ url: String, headers: [Header] = [], body: [UInt8] = [], milliseconds: Int = 5_000, answerBytes: Int = 64 << 10,
        allowsPrivateAddresses: Bool = false
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.milliseconds = milliseconds
        self.answerBytes = answerBytes
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }
}

/// The answer of another service, of any status. A redirect is an answer and is not followed.
package struct OutboundAnswer: Hashable, Sendable {
    package var status: Int
    /// The headers by name in lower case. Of several with one name, the first.
    package var headers: [String: String]
    package var body: [UInt8]

    package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    package var isSuccess: Bool { (200..<300).contains(status) }
}

/// Sends requests to other services, as the port of identity.
package protocol OutboundHTTP: Sendable {
    /// Sends a request and collects the answer.
    ///
    /// - Throws: `outboundFailed` without an answer; `outboundTooLarge` with one of more than `answerBytes`; `tooManyRequests` beyond the
    ///   requests that run at a time; `outboundTimeout` after `milliseconds`;
    ///   `outboundAddressRefused` for an address that is not allowed, before any byte of the request is sent.
    func send(_ request: OutboundRequest) async throws(SluiceError) -> OutboundAnswer
}
