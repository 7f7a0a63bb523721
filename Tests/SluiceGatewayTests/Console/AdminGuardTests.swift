import Foundation
import GatewayTestSupport
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceValues
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct `The guard of the admin port` {
    private static func problem(
        _ method: HTTPRequest.Method, host: String? = "127.0.0.1:8091", _ fields: [String: String] = [:], names: Set<String> = []
    ) -> SluiceError? {
        var head = HTTPRequest(method: method, scheme: "http", authority: host, path: "/admin/v1/users")
        for (name, value) in fields { head.headerFields[HTTPField.Name(name) ?? .accept] = value }
        return AdminGuard<ClientContext>.problem(head, names: names)
    }

    @Test(arguments: [
        "127.0.0.1:8091", "127.0.0.1", "[::1]:8091", "[fe80::1]", "10.1.2.3:80", "localhost", "LOCALHOST:8091", "localhost.:8091",
        "app.localhost:8091", "gateway:8091", "ops.example.com:8091", "Ops.Example.com", "",
    ])
    func `lets through an address, and names that no stranger has`(host: String) {
        #expect(Self.problem(.get, host: host, names: ["ops.example.com"]) == nil)
        #expect(Self.problem(.post, host: host, names: ["ops.example.com"]) == nil)
    }

    @Test(arguments: ["evil.example:8091", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "a.b.", "1.2.3.4.5"])
    func `refuses other names, whatever is asked`(host: String) {
        for method in [HTTPRequest.Method.get, .post, .put, .delete] {
            #expect(Self.problem(method, host: host)?.code == .crossSiteRequest, "\(method)")
        }
    }

    @Test func `refuses changes that a page asks for`() {
        for method in [HTTPRequest.Method.post, .put, .delete] {
            #expect(Self.problem(method) == nil)
            #expect(Self.problem(method, ["Origin": "https://evil.example"])?.message.contains("evil.example") == true)
            #expect(Self.problem(method, ["Origin": "null"])?.code == .crossSiteRequest)
            for site in ["cross-site", "same-site"] {
                #expect(Self.problem(method, ["Sec-Fetch-Site": site])?.code == .crossSiteRequest)
            }
        }
        // A link in a runbook.
        #expect(Self.problem(.get, ["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"]) == nil)
    }

    @Test func `stands before the API and the console, and not before what programs watch`() async throws {
        try await RunningGateway.with { gateway in
            func status(_ method: String, _ path: String, _ field: String, _ value: String) async throws -> (Int, JSON) {
                var request = URLRequest(url: try #require(URL(string: gateway.adminURL + path)))
                request.httpMethod = method
                request.setValue(value, forHTTPHeaderField: field)
                let (data, response) = try await URLSession.shared.data(for: request)
                return ((response as? HTTPURLResponse)?.statusCode ?? 0, (try? JSON.parse(Array(data))) ?? .null)
            }
            let (refused, error) = try await status("DELETE", "/admin/v1/users/x", "Origin", "https://evil.example")
            #expect(refused == 403 && error["code"]?.int == Int64(ErrorCode.crossSiteRequest.rawValue), "\(error.text)")
            for path in ["/admin/v1/users", "/admin/v1/plugins", "/admin/v1/quarantine", "/console", "/console/why", "/"] {
                #expect(try await status("GET", path, "Host", "evil.example").0 == 403, "\(path)")
                #expect(try await status("GET", path, "Host", "gateway:8091").0 == 200, "\(path)")
            }
            for path in ["/metrics", "/health", "/ready"] {
                #expect(try await status("GET", path, "Host", "gateway.ops.svc.cluster.local").0 == 200, "\(path)")
            }
        }
    }
}
