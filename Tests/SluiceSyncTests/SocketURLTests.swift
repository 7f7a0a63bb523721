import SluiceCore
import SluiceSync
import Testing

/// The addresses that apps and proxies write, and their parts.
@Suite struct SocketURLTests {
    struct Address: CustomTestStringConvertible, Sendable {
        var text: String
        var isSecure = false
        var host = "host"
        var port = 80
        var path = "/"
        var authority = "host"

        var testDescription: String { text }
    }

    private static let addresses: [Address] = [
        Address(text: "http://host"),
        Address(text: "HTTP://HOST/"),
        Address(text: "HttpS://Host", isSecure: true, port: 443),
        Address(text: "https://host:443/a", isSecure: true, port: 443, path: "/a"),
        Address(text: "https://host:80/a", isSecure: true, path: "/a", authority: "host:80"),
        Address(text: "http://host:8080", port: 8_080, authority: "host:8080"),
        Address(text: "http://host:/", path: "/"),
        Address(text: "http://host:080/"),
        Address(text: "http://a-b_c.example.com.", host: "a-b_c.example.com.", authority: "a-b_c.example.com."),
        // The path and the query.
        Address(text: "http://host?x", path: "/?x"),
        Address(text: "http://host:81?x=a/b@c:d?e", port: 81, path: "/?x=a/b@c:d?e", authority: "host:81"),
        Address(text: "http://host#part", path: "/"),
        Address(text: "http://host/a?b#c?d", path: "/a?b"),
        Address(text: "http://host/a@b:c//d", path: "/a@b:c//d"),
        Address(text: "http://host/a b\"<>[]\\^`{|}", path: "/a%20b%22%3C%3E%5B%5D%5C%5E%60%7B%7C%7D"),
        Address(text: "http://host/ä/€?ö", path: "/%C3%A4/%E2%82%AC?%C3%B6"),
        Address(text: "http://host/%C3%a4%2F", path: "/%C3%a4%2F"),
        Address(text: "http://host/100%&%2&%zz%", path: "/100%25&%252&%25zz%25"),
        Address(text: "http://host/a\r\nX-Header: b", path: "/a%0D%0AX-Header:%20b"),
        // IP addresses.
        Address(text: "http://127.0.0.1:81", host: "127.0.0.1", port: 81, authority: "127.0.0.1:81"),
        Address(text: "http://[::1]", host: "::1", authority: "[::1]"),
        Address(text: "http://[2001:DB8::7]:81/a", host: "2001:db8::7", port: 81, path: "/a", authority: "[2001:db8::7]:81"),
        Address(text: "http://[::ffff:10.0.0.1]?b", host: "::ffff:10.0.0.1", path: "/?b", authority: "[::ffff:10.0.0.1]"),
        Address(text: "http://[fe80::1%25eth0]:81", host: "fe80::1%eth0", port: 81, authority: "[fe80::1]:81"),
        Address(text: "http://[fe80::1%eth0]", host: "fe80::1%eth0", authority: "[fe80::1]"),
    ]

    private static let mistakes: [(String, String)] = [
        ("", "no scheme"), ("host", "no scheme"), ("host:80", "no scheme"), ("http:/host", "no scheme"), ("http:host", "no scheme"),
        (" http://host", "scheme is  http"), ("ftp://host", "scheme is ftp"), ("ws://host", "scheme is ws"),
        ("http://", "no host"), ("http://:80", "no host"), ("http:///a", "no host"), ("http://?a", "no host"),
        ("http://a b", "host is a b"), ("http://a\r\nb", "host is a"), ("http://münchen.example", "host is münchen.example"),
        ("http://a%41", "host is a%41"), ("http://::1", "no host"), ("http://host\\path", "host is host\\path"),
        ("http://[::1", "host is [::1"), ("http://[host]", "host is [host]"), ("http://[127.0.0.1]", "host is [127.0.0.1]"),
        ("http://[1:2]", "host is [1:2]"), ("http://[]", "host is []"), ("http://[fe80::1%25]", "host is [fe80::1%25]"),
        ("http://[::1]x", "port is x"), ("http://host:x", "port is x"), ("http://host:+80", "port is +80"),
        ("http://host:-1", "port is -1"), ("http://host:0", "port is 0"), ("http://host:65536", "port is 65536"),
        ("http://host:8 0", "port is 8 0"), ("http://host:80:81", "port is 80:81"),
    ]

    @Test(arguments: addresses)
    func `an address has these parts`(address: Address) throws {
        let web = try SocketURL(http: address.text)
        // A WebSocket's address differs in its scheme alone.
        let socket = try SocketURL("ws" + address.text.dropFirst("http".count))
        for url in [web, socket] {
            #expect(url.isSecure == address.isSecure && url.port == address.port && url.host == address.host)
            #expect(url.path == address.path)
            #expect(url.authority == address.authority)
        }
    }

    @Test(arguments: mistakes)
    func `what is no address is an error that says why, and how to write one`(text: String, reason: String) {
        let error = #expect(throws: SluiceError.self) { try SocketURL(http: text) }
        #expect(error?.code == .connectionFailed && error?.message.hasPrefix("\(text) is not the address of a gateway") == true)
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
        #expect(error?.fix?.contains("http://host:port") == true)
    }

    @Test func `an error does not repeat a password`() {
        let error = #expect(throws: SluiceError.self) { try SocketURL("wss://user:secret@host/") }
        #expect(error?.message.contains("user name") == true && error?.message.contains("secret") == false)
        #expect(error?.fix?.contains("wss://host:port") == true)
    }

    private static let references: [(String, String)] = [
        ("https://other/a", "https://other/a"), ("HTTP://other:80", "http://other/"), ("//other/a?b", "https://other/a?b"),
        ("/x", "https://host:81/x"), ("/x?y#z", "https://host:81/x?y"), ("/a/./b/../c", "https://host:81/a/c"), ("/..", "https://host:81/"),
        ("x", "https://host:81/a/x"), ("x/y?z", "https://host:81/a/x/y?z"), ("../x", "https://host:81/x"), ("./", "https://host:81/a/"),
        ("..", "https://host:81/"), ("../../x", "https://host:81/x"), ("?y", "https://host:81/a/b?y"), ("", "https://host:81/a/b?c"),
        ("#z", "https://host:81/a/b?c"), ("x y", "https://host:81/a/x%20y"), ("x?../y", "https://host:81/a/x?../y"),
    ]

    @Test(arguments: references)
    func `the location of a redirect is resolved against the address that was asked`(reference: String, result: String) throws {
        let url = try SocketURL(http: "https://host:81/a/b?c")
        #expect(try url.resolving(reference).httpText == result)
    }

    @Test func `an origin is the scheme, the host and the port`() throws {
        let url = try SocketURL(http: "https://host/a")
        for (text, isSame) in [
            ("https://HOST:443/b", true), ("http://host:443/a", false), ("https://host:444/a", false), ("https://other/a", false),
        ] {
            let other = try SocketURL(http: text)
            #expect(url.isSameOrigin(as: other) == isSame, "\(text)")
        }
    }
}
