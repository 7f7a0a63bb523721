import Crypto
import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceValues

/// The frame of the pages behind the links of mails. They load nothing, and run no script.
struct AccountPage: Sendable {
    var title: String
    var body: HTML
    var status = HTTPResponse.Status.ok
    /// The value of `Retry-After`, in seconds; nil for none.
    var retryAfter: Int?

    var response: Response {
        var headers: HTTPFields = [
            .contentType: "text/html; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: Self.policy,
        ]
        // The URL of the page has the secret of the link.
        if let policy = HTTPField.Name("Referrer-Policy") { headers[policy] = "no-referrer" }
        if let retryAfter { headers[.retryAfter] = "\(retryAfter)" }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: html.text)))
    }

    private var html: HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(title)</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        <main>
        <h1>\(title)</h1>
        \(body)</main>
        </body>
        </html>

        """
    }

    /// The colours of the system, which have enough contrast in both schemes.
    private static let style: HTML = """
        :root{color-scheme:light dark}
        body{font:1.1rem/1.5 system-ui,sans-serif;margin:0}
        main{max-width:32rem;margin:0 auto;padding:1.5rem}
        h1{font-size:1.4rem;line-height:1.25}
        label{display:block;margin:1rem 0}
        input{display:block;box-sizing:border-box;width:100%;font:inherit;padding:.5rem}
        button{font:inherit;padding:.5rem 1.25rem}
        .problem{border-left:.4rem solid #d33;padding-left:.75rem}
        """

    /// The style is the only content beside text that a browser may use.
    private static let policy =
        "default-src 'none'; style-src 'sha256-\(Base64.encode(Array(SHA256.hash(data: Array(style.text.utf8)))))'; form-action 'self'; "
        + "frame-ancestors 'none'; base-uri 'none'"
}
