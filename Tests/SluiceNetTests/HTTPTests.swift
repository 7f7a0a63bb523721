import HTTPTypes
import Hummingbird
import NIOCore
import SluiceCore
import SluiceNet
import SluiceValues
import TestSupport
import Testing

@Suite struct ErrorStatusTests {
    @Test(arguments: ErrorCode.allCases) func `a status blames the client only if a retry cannot help`(code: ErrorCode) {
        switch code.httpStatus.code {
        case 408, 429, 500...: break
        default: #expect(!code.isRetriable)
        }
        if [429, 503, 504].contains(code.httpStatus.code) { #expect(code.isRetriable) }
    }
}

@Suite struct JSONResponseTests {
    private static let plain = "application/json"

    /// App Services' client libraries take a success of the plain type with a text `error` for an error.
    @Test func `a success with a text as its error has a charset`() {
        func type(_ json: JSON, _ status: HTTPResponse.Status) -> String? {
            JSONResponse(json, status: status).response.headers[.contentType]
        }
        for status in [HTTPResponse.Status.ok, .created, .accepted, .init(code: 207)] {
            #expect(type(["error": "none"], status) == "application/json; charset=utf-8")
            for json: JSON in [["ok": true], ["error": .null], ["error": 1], ["nested": ["error": "none"]], [["error": "none"]], "error"] {
                #expect(type(json, status) == Self.plain, "\(json.text)")
            }
        }
        for status in [HTTPResponse.Status.badRequest, .unauthorized, .internalServerError] {
            #expect(type(["error": "none"], status) == Self.plain)
        }
    }

    /// The failures of a server for which App Services' clients have a type.
    @Test func `a failure of the gateway or of its database has a name that clients know`() {
        for code in [ErrorCode.postgresStatement, .internalError] { #expect(code.appServicesName == "InternalServerError") }
        #expect(ErrorCode.postgresUnreachable.appServicesName == "MaintenanceInProgress")
    }

    @Test(arguments: [ErrorCode.badRequest, .invalidSession, .internalError])
    func `an error has a name, a link and the plain type`(code: ErrorCode) {
        let error = SluiceError(code, "No.")
        #expect(ErrorResponse(error).response.headers[.contentType] == Self.plain)
        #expect(ErrorResponse(error).json["error_code"] == .string(code.appServicesName))
        #expect(ErrorResponse(error).json["link"]?.string?.isEmpty == false)
        let named = ErrorResponse(error, name: "NotCallable")
        #expect(named.json["error_code"] == "NotCallable" && named.json["code"] == .int(Int64(code.rawValue)))
        #expect(named.status == code.httpStatus)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct HTTPTests {
    @Test func `a route answers, and the connection takes the next request`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            for _ in 0..<2 {
                let (head, body) = try await client.request("GET", "/hello")
                #expect(head.hasPrefix("HTTP/1.1 200 "))
                #expect(try JSON.parse(body) == ["greeting": "hello"])
            }
        }
    }

    @Test(arguments: [
        ("GET", "/nowhere", "", "404", 400), ("GET", "/fail", "", "401", 401), ("POST", "/echo", "{\"a\":", "400", 422),
        ("POST", "/echo", String(repeating: " ", count: 65), "413", 413), ("GET", "/sync", "", "426", 400),
        ("GET", "/secret", "", "500", 201),
    ])
    func `every error is JSON with a code and a fix`(
        method: String, path: String, body: String, status: String, code: Int64
    ) async throws {
        try await withServer { server in
            let answer = try await RawClient.connect(port: server.port).request(method, path, body: body)
            #expect(answer.head.hasPrefix("HTTP/1.1 \(status) "))
            let json = try JSON.parse(answer.body)
            #expect(json["code"] == .int(code))
            #expect(json["error"]?.string?.isEmpty == false)
            #expect(json["error_code"]?.string?.isEmpty == false)
            #expect(json["fix"]?.string?.isEmpty == false)
            #expect(!answer.body.contains("Ended"), "an unknown error's text is not for the client")
        }
    }

    @Test func `an error carries the name that App Services gave it`() async throws {
        try await withServer { server in
            let answer = try await RawClient.connect(port: server.port).request("GET", "/fail")
            let json = try JSON.parse(answer.body)
            #expect(json["error_code"] == "InvalidPassword")
            #expect(json["error"] == "The password of 'a@b' is wrong.")
        }
    }

    @Test func `a request that is not HTTP is refused and the connection closed`() async throws {
        try await withServer { server in
            let client = try await RawClient.connect(port: server.port)
            try await client.send(text: "EHLO mail.example\r\n\r\n")
            #expect(try await client.readHead().hasPrefix("HTTP/1.1 400 "))
            _ = try await client.readToEnd()
        }
    }

    @Test func `a connection that sends nothing is closed when its time is over`() async throws {
        try await withServer(.init(firstRequestPatience: .milliseconds(50))) { server in
            let client = try await RawClient.connect(port: server.port)
            #expect(try await client.readToEnd() == 0)
        }
    }

    @Test func `a port that is taken is named`() async throws {
        try await withServer { first in
            let port = first.port
            let error = await #expect(throws: SluiceError.self) {
                try await withServer(.init(port: port)) { _ in }
            }
            #expect(error?.code == .portInUse)
            #expect(error?.message.contains("\(port)") == true)
            var taken = NetServer.Configuration(port: port)
            taken.portOption = "--admin-port"
            let other = await #expect(throws: SluiceError.self) { try await withServer(taken) { _ in } }
            #expect(error?.fix?.contains("with --port;") == true && other?.fix?.contains("with --admin-port;") == true)
        }
    }

    /// Else a test's server finds another's on its port when it comes back.
    @Test func `a port to come back to is given once`() throws {
        let ports = try (0..<1000).map { _ in try LocalSocket.portToComeBackTo() }
        #expect(Set(ports).count == ports.count)
    }

    @Test func `an address that is not this machine's is named`() async throws {
        let error = await #expect(throws: SluiceError.self) {
            try await withServer(.init(host: "192.0.2.1")) { _ in }
        }
        #expect(error?.code == .configInvalid)
    }

    @Test func `a missing certificate is named`() async throws {
        let files = TLSFiles(certificateChain: "/nowhere/chain.pem", privateKey: "/nowhere/key.pem")
        let error = await #expect(throws: SluiceError.self) {
            try await withServer(.init(tls: files)) { _ in }
        }
        #expect(error?.code == .configInvalid)
        #expect(error?.message.contains("/nowhere/chain.pem") == true)
    }
}
