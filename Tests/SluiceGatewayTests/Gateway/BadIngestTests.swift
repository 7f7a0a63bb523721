import SluiceCore
import Testing

@Suite struct `A gateway whose HTTP ingest is sent nonsense` {
    @Test func `takes the good lines of a body and names the broken ones`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let lines = [
                    #"{"_id": "a", "store": "north", "value": 1.5}"#,
                    #"{"_id": "b", "store": "north", "value": 1.5"#,
                    "",
                    #"{"_id": "c", "store": "north"}"#,
                    #"{"_id": "d", "store": "north", "value": 2.5}"#,
                    #"{"_id": "e", "store": "north", "value": "warm"}"#,
                ]
                let token = try await gateway.anonymousToken()
                let answer = try await gateway.request(
                    "POST", "/v1/ingest/Reading", lines.joined(separator: "\n"), token: token, type: "application/x-ndjson")
                #expect(answer.status == 207)
                #expect(answer.json["accepted"] == .int(2))
                let refused = answer.json["rejected"]?.array ?? []
                #expect(refused.compactMap { $0["line"]?.int } == [2, 4, 6])
                #expect(refused.first?["error"]?.string?.isEmpty == false)
                #expect(refused.last?["error"]?.string?.contains("value") == true, "\(answer)")
                #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id IN ('a', 'd')") == 2)
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 2)
            }
        }
    }

    @Test func `answers 404 for a class that is not asymmetric or not there`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let token = try await gateway.anonymousToken()
                for type in ["Order", "Nonsense"] {
                    let answer = try await gateway.request("POST", "/v1/ingest/\(type)", #"{"_id": "a"}"#, token: token)
                    #expect((answer.status, answer.code) == (404, 802), "\(type): \(answer)")
                }
            }
        }
    }

    @Test func `answers 401 without a token, and with a bad one`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                for token in [nil, "x.y.z"] {
                    let answer = try await gateway.request("POST", "/v1/ingest/Reading", #"{"_id": "a"}"#, token: token)
                    #expect((answer.status, answer.code) == (401, 203), "\(answer)")
                }
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
            }
        }
    }

    @Test func `answers 422 for a body that is no JSON`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let answer = try await gateway.request("POST", "/v1/ingest/Reading", "{", token: try await gateway.anonymousToken())
                #expect(answer.status == 422 || answer.status == 400, "\(answer)")
                #expect(answer.json["error"]?.string?.isEmpty == false)
            }
        }
    }
}
