import SluiceCore
import SluiceSync
import Testing

/// Requests of an app, against a server that answers by the path that is asked for.
@Suite(.timeLimit(.minutes(1))) struct HTTPTransportTests {
    private func withServer(_ body: (_ url: String) async throws -> Void) async throws {
        try await TestHTTPServer.with { server in try await body(server.url) }
    }

    private func failure(_ request: HTTPTransport.Request, maximumBytes: Int = 1 << 20) async -> SluiceError? {
        do throws(SluiceError) {
            _ = try await HTTPTransport(maximumBytes: maximumBytes).send(request)
            return nil
        } catch { return error }
    }

    @Test(arguments: ["GET", "POST", "PATCH", "PUT", "DELETE"])
    func `method, headers and body arrive, and so does the answer`(method: String) async throws {
        try await withServer { url in
            let body = method == "GET" || method == "DELETE" ? [] : Array(String(repeating: "body ", count: 50_000).utf8)
            let response = try await HTTPTransport().send(
                HTTPTransport.Request(method: method, url: "\(url)/echo", headers: ["X-Test": "value"], body: body, milliseconds: 30_000))
            #expect(response.status == 201)
            #expect(response.body == Array("\(method) value ".utf8) + body)
        }
    }

    @Test func `an answer that does not come ends with the deadline`() async throws {
        try await withServer { url in
            let error = await failure(HTTPTransport.Request(method: "POST", url: "\(url)/never", body: [1], milliseconds: 200))
            #expect(error?.code == .timeout && error?.message.contains(url) == true, "\(String(describing: error))")
        }
    }

    @Test func `a server that closes, or is not there, is a connection that failed`() async throws {
        try await withServer { url in
            for path in ["close", "half"] {
                let error = await failure(HTTPTransport.Request(method: "POST", url: "\(url)/\(path)", body: [1], milliseconds: 30_000))
                #expect(error?.code == .connectionFailed, "\(path): \(String(describing: error))")
            }
        }
        let gone = await failure(HTTPTransport.Request(method: "GET", url: "http://127.0.0.1:1/", milliseconds: 30_000))
        #expect(gone?.code == .connectionFailed)
        let wrong = await failure(HTTPTransport.Request(method: "GET", url: "ws://127.0.0.1:1/", milliseconds: 30_000))
        #expect(wrong?.fix?.contains("http://") == true)
    }

    @Test func `an answer over the bound is refused`() async throws {
        try await withServer { url in
            let error = await failure(
                HTTPTransport.Request(method: "POST", url: "\(url)/echo", body: Array(repeating: 1, count: 2_000), milliseconds: 30_000),
                maximumBytes: 1_000)
            #expect(error?.code == .limitsExceeded && error?.message.contains("1000 bytes") == true, "\(String(describing: error))")
        }
    }

    @Test func `a compressed answer is not unpacked, so that no small one fills the memory`() async throws {
        try await withServer { url in
            let response = try await HTTPTransport(maximumBytes: 100).send(
                HTTPTransport.Request(method: "GET", url: "\(url)/compressed", milliseconds: 30_000))
            #expect(response.body == TestHTTPServer.compressed)
        }
    }

    @Test func `an answer without an end, and one with an endless head, are refused`() async throws {
        try await TestHTTPServer.with { server in
            let endless = await failure(HTTPTransport.Request(method: "GET", url: "\(server.url)/endless", milliseconds: 30_000))
            #expect(endless?.code == .limitsExceeded, "\(String(describing: endless))")
            let head = await failure(HTTPTransport.Request(method: "GET", url: "\(server.url)/long-head", milliseconds: 30_000))
            #expect(head?.code == .connectionFailed, "\(String(describing: head))")
            try await server.closed()
        }
    }

    @Test func `a request that is cancelled ends at once`() async throws {
        try await withServer { url in
            let waiting = Task {  // Unstructured because: it is cancelled and awaited here.
                await failure(HTTPTransport.Request(method: "POST", url: "\(url)/never", body: [1], milliseconds: 600_000))
            }
            waiting.cancel()
            #expect(await waiting.value != nil)
        }
    }

    @Test func `a request that is cancelled before it begins is not sent`() async throws {
        try await TestHTTPServer.with { server in
            let request = HTTPTransport.Request(method: "POST", url: "\(server.url)/never", body: [1], milliseconds: 600_000)
            let waiting = Task {  // Unstructured because: it is cancelled and awaited here.
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure(request)
            }
            #expect(await waiting.value?.code == .connectionFailed)
            try await server.closed()
            #expect(server.received.isEmpty)
        }
    }

    @Test func `a request that is cancelled while it waits for the answer closes its connection`() async throws {
        try await TestHTTPServer.with { server in
            let request = HTTPTransport.Request(method: "POST", url: "\(server.url)/never", body: [1], milliseconds: 600_000)
            let waiting = Task { await failure(request) }  // Unstructured because: it is cancelled and awaited here.
            for await _ in server.arrivals { break }
            waiting.cancel()
            #expect(await waiting.value?.code == .connectionFailed)
            try await server.closed()
            #expect(server.received.count == 1 && server.connections == 1)
        }
    }

    @Test func `many requests at once are all answered, and leave no connection open`() async throws {
        try await TestHTTPServer.with { server in
            let url = "\(server.url)/together"
            let answers = try await withThrowingTaskGroup(of: HTTPTransport.Response.self) { group in
                for index in 0..<TestHTTPServer.crowd {
                    group.addTask {
                        try await HTTPTransport().send(
                            HTTPTransport.Request(method: "POST", url: url, headers: ["X-Test": "\(index)"], milliseconds: 30_000))
                    }
                }
                var texts: Set<String> = []
                for try await response in group { texts.insert(String(decoding: response.body, as: UTF8.self)) }
                return texts
            }
            #expect(answers == Set((0..<TestHTTPServer.crowd).map { "POST \($0) " }))
            try await server.closed()
            #expect(server.connections == TestHTTPServer.crowd)
        }
    }
}
