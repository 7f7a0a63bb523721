import Foundation
import SluiceCompression
import SluiceCore
import SluiceValues

/// Sends lines in batches and counts the accepted and the rejected ones.
package struct IngestSender {
    /// The size at which a batch is sent, in uncompressed bytes. A batch exceeds it by at most one line.
    private static let batchBytes = 4 << 20

    private let type: String
    private let client: GatewayClient
    private let token: String
    private let batch: Int
    /// The prefix of this run's idempotency keys.
    private let run = UUID().uuidString.lowercased()
    private var requests = 0
    package private(set) var accepted = 0
    package private(set) var rejected = 0

    package init(type: String, client: GatewayClient, token: String, batch: Int) {
        self.type = type
        self.client = client
        self.token = token
        self.batch = batch
    }

    /// Sends the lines of a file and reports rejected ones on standard error.
    ///
    /// - Throws: The error of the first batch that the gateway did not answer completely.
    package mutating func send(_ reader: LineReader, named name: String) async throws {
        var body: [UInt8] = []
        var (first, lines) = (1, 0)
        while let line = try reader.next() {
            body += line
            body.append(UInt8(ascii: "\n"))
            lines += 1
            if lines == batch || body.count >= Self.batchBytes {
                try await send(body, of: name, first: first)
                (first, lines) = (first + lines, 0)
                body.removeAll(keepingCapacity: true)
            }
        }
        if lines > 0 { try await send(body, of: name, first: first) }
    }

    private mutating func send(_ lines: [UInt8], of file: String, first: Int) async throws {
        // One key for all attempts of a batch: the gateway answers a repeated key with the first result.
        requests += 1
        let headers = ["Content-Encoding": "gzip", "Idempotency-Key": "\(run)-\(requests)"]
        let answer = try await client.post(
            "/v1/ingest/\(type)", Data(Gzip.compress(lines)), contentType: "application/x-ndjson", token: token, headers, attempts: 20)
        guard let count = answer.json["accepted"]?.int, answer.json["complete"]?.bool == true else { throw answer.error }
        accepted += Int(count)
        rejected += Int(answer.json["rejected_count"]?.int ?? 0)
        for refusal in answer.json["rejected"]?.array ?? [] {
            let line = first + Int(refusal["line"]?.int ?? 1) - 1
            StandardError.write("\(file):\(line): \(refusal["error"]?.string ?? "rejected")\n")
        }
    }
}
