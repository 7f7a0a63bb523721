import Foundation
import SluiceCore
import SluiceValues
import TestSupport
import Testing

/// Requests to gateways that are processes of their own.
@Suite(.serialized, .timeLimit(.minutes(10))) struct IngestRequestTests {
    private static let objects = 3_072
    private static let objectBytes = 64 << 10
    /// Three quarters of the body: what the request holds of it at a time, what waits for Kafka, and what the sink has read of it. That is
    /// about 100 MiB, and 127 MiB for a body of 384 MiB.
    private static let bound = 144 << 20

    @Test func `a body of 192 MiB takes no more memory than the bounds of the queues that it goes through`() async throws {
        try await IngestField.with(try await TestBroker.start()) { field in
            let (gateway, token) = (field.gateways.all[0], try await field.token())
            let port = try #require(gateway.port)
            // The first objects bring up what every request uses.
            let first = try await Self.post(objects: 0..<64, to: port, token)
            try #require(first.status == 200, "\(first)")
            let before = try gateway.memory().now
            try gateway.forgetPeak()
            let answer = try await Self.post(objects: 64..<Self.objects + 64, to: port, token)
            #expect(answer.status == 200 && answer.body["accepted"]?.int == Int64(Self.objects), "\(answer)")
            let growth = try gateway.memory().peak - before
            print("ingest: a body of \((Self.objects * Self.objectBytes) >> 20) MiB, \(growth >> 20) MiB of memory beside \(before >> 20)")
            #expect(growth < Self.bound, "It took \(growth) bytes.")
        }
    }

    @Test func `while the broker says nothing requests are told to come again, and then everything is stored once`() async throws {
        let broker = try await TestBroker.start()
        try await IngestField.with(broker) { field in
            let token = try await field.token()
            func send() async throws -> Answer {
                try await Self.post(objects: 0..<20, bytes: 200, to: try #require(field.gateways.all[0].port), token)
            }
            broker.pause()
            let refused = try await send()
            #expect(refused.status == 503 && refused.head.lowercased().contains("\r\nretry-after: "), "\(refused)")
            #expect(refused.body["accepted"]?.int == 0 && refused.body["complete"] == false, "\(refused)")
            broker.resume()
            let taken = try await found(every: .milliseconds(500)) {
                let answer = try await send()
                if answer.status == 200 { return answer }
                try #require(answer.status == 503 || answer.status == 429, "\(answer)")
                return nil
            }
            let answer = try #require(taken, "The gateway does not find the broker again.")
            #expect(answer.body["accepted"] == 20)
            let stored = "SELECT count(*) FROM weather_observations WHERE \"_id\" LIKE 'big-%'"
            let areStored = try await eventually(every: .milliseconds(100)) { try await field.count(stored) == 20 }
            try #require(areStored, "Not everything is stored.")
        }
    }

    private struct Answer {
        var status: Int
        var head: String
        var body: JSON
    }

    /// Sends a body in chunks as it is made: nobody has it whole.
    private static func post(objects: Range<Int>, bytes: Int = objectBytes, to port: Int, _ token: String) async throws -> Answer {
        let answer = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<[UInt8], any Error>) in
            Thread.detachNewThread { continuation.resume(with: Result { try exchange(objects, bytes, port, token) }) }
        }
        let text = String(decoding: answer, as: UTF8.self)
        let end = try #require(text.range(of: "\r\n\r\n"), "\(text.prefix(500))")
        let head = String(text[..<end.lowerBound])
        let status = try #require(head.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        return Answer(status: status, head: head, body: try JSON.parse(String(text[end.upperBound...])))
    }

    private static func exchange(_ objects: Range<Int>, _ bytes: Int, _ port: Int, _ token: String) throws -> [UInt8] {
        let socket = try LocalSocket(port: port)
        let head =
            "POST /v1/ingest/WeatherObservation HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n"
            + "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        try socket.write(Array(head.utf8))
        let text = String(repeating: "wind over the bay ", count: bytes / 18)
        for number in objects {
            let line =
                #"{"_id":"big-\#(number)","origin":"JFK","time":"2013-12-01T00:00:00Z","temp":4.5,"units":"si","source":"\#(text)"}"# + "\n"
            try socket.write(Array("\(String(line.utf8.count, radix: 16))\r\n\(line)\r\n".utf8))
        }
        try socket.write(Array("0\r\n\r\n".utf8))
        return try socket.readAll()
    }
}
