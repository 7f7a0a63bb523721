import NIOHTTP1
import SluiceCore
import SluiceSync
import Testing

/// Redirects, as reverse proxies and servers that have moved send them.
@Suite(.timeLimit(.minutes(1))) struct HTTPRedirectTests {
    private func request(_ method: String, _ url: String, to location: String?, milliseconds: UInt64 = 30_000) -> HTTPTransport.Request {
        var headers = ["Authorization": "Bearer t", "Content-Type": "application/json", "X-Test": "value"]
        headers["X-Location"] = location
        return HTTPTransport.Request(method: method, url: url, headers: headers, body: Array("body".utf8), milliseconds: milliseconds)
    }

    private func failure(_ request: HTTPTransport.Request) async -> SluiceError? {
        do throws(SluiceError) {
            _ = try await HTTPTransport().send(request)
            return nil
        } catch { return error }
    }

    @Test(arguments: [
        (301, "GET", "GET"), (301, "POST", "POST"), (302, "GET", "GET"), (302, "POST", "GET"), (302, "PUT", "PUT"),
        (302, "DELETE", "DELETE"), (303, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"), (307, "PATCH", "PATCH"),
        (308, "POST", "POST"), (308, "PUT", "PUT"),
    ])
    func `a redirect on the same origin is followed with the token`(status: Int, method: String, followed: String) async throws {
        try await TestHTTPServer.with { server in
            let response = try await HTTPTransport().send(request(method, "\(server.url)/redirect/\(status)", to: "../echo?a"))
            let isSame = method == followed
            #expect(response.status == 201)
            #expect(String(decoding: response.body, as: UTF8.self) == "\(followed) value \(isSame ? "body" : "")")
            let last = try #require(server.received.last)
            #expect(last.uri == "/echo?a" && last.headers["Authorization"] == ["Bearer t"])
            #expect(last.headers["Content-Type"] == (isSame ? ["application/json"] : []))
            #expect(server.received.count == 2)
            try await server.closed()
        }
    }

    @Test func `another origin receives neither the token nor the app's other headers`() async throws {
        try await TestHTTPServer.with { first in
            try await TestHTTPServer.with { second in
                let response = try await HTTPTransport().send(request("POST", "\(first.url)/redirect/307", to: "\(second.url)/echo"))
                #expect(String(decoding: response.body, as: UTF8.self) == "POST  body")
                let head = try #require(second.received.last)
                #expect(head.headers["Host"] == ["127.0.0.1:\(second.port)"] && head.headers["Content-Type"] == ["application/json"])
                for name in ["Authorization", "X-Test", "X-Location"] { #expect(head.headers[name].isEmpty, "\(name)") }
            }
        }
    }

    @Test func `other answers are returned, with or without a location`() async throws {
        try await TestHTTPServer.with { server in
            for (status, location) in [(300, "/echo"), (304, "/echo"), (404, "/echo"), (307, nil)] as [(Int, String?)] {
                let response = try await HTTPTransport().send(request("POST", "\(server.url)/redirect/\(status)", to: location))
                #expect(response.status == status)
            }
            #expect(server.received.count == 4)
        }
    }

    @Test func `a circle ends after twenty redirects with an error that names it`() async throws {
        try await TestHTTPServer.with { server in
            let error = await failure(request("POST", "\(server.url)/loop", to: nil))
            #expect(error?.code == .connectionFailed && error?.message.contains("\(server.url)/loop redirects more than 20 times") == true)
            #expect(server.received.count == 21)
            try await server.closed()
        }
    }

    @Test func `the time is that of all redirects together`() async throws {
        try await TestHTTPServer.with { server in
            let error = await failure(request("POST", "\(server.url)/redirect/308", to: "/never", milliseconds: 300))
            #expect(error?.code == .timeout && error?.message.contains("\(server.url)/") == true, "\(String(describing: error))")
        }
    }

    @Test(arguments: ["ftp://host/", "http://", "//user:secret@host/", "https://host:x/"])
    func `a location that is no address is an error that names both`(location: String) async throws {
        try await TestHTTPServer.with { server in
            let error = await failure(request("POST", "\(server.url)/redirect/301", to: location))
            #expect(error?.code == .connectionFailed)
            #expect(error?.message.contains("\(server.url)/redirect/301 redirects to an unusable address") == true)
            #expect(error?.message.contains("secret") == false, "\(String(describing: error))")
        }
    }
}
