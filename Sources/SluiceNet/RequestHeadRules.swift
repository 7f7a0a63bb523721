import NIOHTTP1
import SluiceCore

/// The rules of a request's head that two servers in a row may read in different ways (RFC 9112, 3.2, 6.1 and 6.3).
///
/// A head that breaks one lets an attacker hide a request from a proxy in front of the gateway. The parser below has further rules: line
/// ends, names of fields, lengths that are no numbers.
enum RequestHeadRules {
    /// Returns the error that rejects a request with this head; nil if it follows all rules.
    static func refusal(of head: HTTPRequestHead) -> ErrorResponse? {
        guard let problem = version(head) ?? host(head) ?? framing(head) else { return nil }
        return ErrorResponse(SluiceError(.badRequest, problem, fix: "Send a request as RFC 9112 defines it."))
    }

    private static func version(_ head: HTTPRequestHead) -> String? {
        head.version == .http1_1 || head.version == .http1_0
            ? nil : "The version is HTTP/\(head.version.major).\(head.version.minor), not HTTP/1.1."
    }

    private static func host(_ head: HTTPRequestHead) -> String? {
        let values = head.headers["host"]
        if values.count > 1 { return "The request has \(values.count) Host fields." }
        guard let host = values.first else { return head.version == .http1_0 ? nil : "The request has no Host field." }
        return host.utf8.allSatisfy(isOfHost) ? nil : "The Host field is not a host with an optional port."
    }

    /// `true` for the bytes of a name, an address or a port (RFC 3986, 3.2.2). No comma: it joins the fields of two hosts.
    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._~%!$&'()*+;=:[]".utf8.contains(byte)
        }
    }

    private static func framing(_ head: HTTPRequestHead) -> String? {
        let codings = head.headers["transfer-encoding"]
        let lengths = head.headers["content-length"]
        if lengths.count > 1 { return "The request has \(lengths.count) Content-Length fields." }
        if let length = lengths.first, length.isEmpty || !length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return "The Content-Length field is not a number."
        }
        guard !codings.isEmpty else { return nil }
        if head.version == .http1_0 { return "HTTP/1.0 has no Transfer-Encoding." }
        if !lengths.isEmpty { return "The request has Content-Length and Transfer-Encoding." }
        // The gateway knows no other coding, and an unknown one leaves the end of the body open.
        guard codings.count == 1, codings[0].lowercased() == "chunked" else { return "The Transfer-Encoding is not 'chunked' alone." }
        return nil
    }
}
