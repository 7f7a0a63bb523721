import SluiceCore

extension HTTPTransport {
    /// The bound of redirects of one request, that of `URLSession`.
    static let mostRedirects = 20

    /// A request on its way through redirects.
    struct Hop: Sendable {
        var request: Request
        /// The parts of `request.url`.
        var url: SocketURL

        /// Returns the request that follows a redirect, or `nil` if the response is none.
        ///
        /// 307 and 308 repeat method and body. So does 301, as in Realm's own client: an app server that has moved answers so to a login,
        /// and a GET of the same path would be another call. After 302 a POST becomes a GET, as in `URLSession`: such an answer may lead to
        /// the login page of a proxy, which must not receive the body.
        /// - Throws: `connectionFailed` if the target is no HTTP address, or would send without TLS what began with it.
        func next(after response: Response) throws(SluiceError) -> Hop? {
            guard let location = response.location else { return nil }
            var next = self
            switch response.status {
            case 301, 307, 308: break
            case 302 where request.method != "POST": break
            case 302, 303:
                next.request.method = request.method == "HEAD" ? "HEAD" : "GET"
                next.request.body = []
                next.request.headers = request.headers.filter { $0.key.lowercased() != "content-type" }
            default: return nil
            }
            do throws(SluiceError) {
                next.url = try url.resolving(location)
            } catch {
                throw SluiceError(
                    .connectionFailed, "\(request.url) redirects to an unusable address: \(error.message)",
                    fix: "Use the gateway's own address, and check the redirects of the proxy.")
            }
            next.request.url = next.url.httpText
            guard next.url.isSecure || !url.isSecure else {
                throw SluiceError(
                    .connectionFailed, "\(request.url) redirects to \(next.request.url), which has no TLS. The request was not sent there.",
                    fix: "Let the proxy redirect to https:// only.")
            }
            // The app names the header of its token, so another origin receives none but these.
            if !next.url.isSameOrigin(as: url) {
                next.request.headers = next.request.headers.filter { ["content-type", "accept"].contains($0.key.lowercased()) }
            }
            return next
        }
    }
}
