import GatewayTestSupport
import SluiceCore
import SluiceValues
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
                    #expect((answer.status, answer.code) == (404, Int(ErrorCode.ingestUnknownType.rawValue)), "\(type): \(answer)")
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

    @Test func `refuses an object that is too large, and takes nothing of it`() async throws {
        try await RunningGateway.with { gateway in
            let line = #"{"_id": "a", "store": "\#(String(repeating: "n", count: 9 << 20))", "value": 1.5}"#
            let answer = try await gateway.request("POST", "/v1/ingest/Reading", line, token: try await gateway.anonymousToken())
            #expect(answer.status == 422)
            let refused = answer.json["rejected"]?.array ?? []
            #expect(refused.map { $0["code"]?.int } == [Int64(ErrorCode.ingestTooLarge.rawValue)])
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }

    @Test func `puts aside what the table does not take, with the reason`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("ALTER TABLE readings ADD CHECK (value < 100)")
            let lines = #"{"_id": "a", "store": "north", "value": 1000}"# + "\n" + #"{"_id": "b", "store": "north", "value": 1}"#
            _ = try await gateway.request(
                "POST", "/v1/ingest/Reading", lines, token: try await gateway.anonymousToken(), type: "application/x-ndjson")
            #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id = 'b'", is: 1))
            let code = ErrorCode.ingestRejected.rawValue
            #expect(
                try await gateway.count(
                    "SELECT count(*) FROM sluice.ingest_rejected WHERE code = \(code) AND object LIKE '%1000%' AND reason LIKE '%check%'")
                    == 1)
        }
    }

    @Test func `answers 422 for a body that is not valid JSON`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let answer = try await gateway.request("POST", "/v1/ingest/Reading", "{", token: try await gateway.anonymousToken())
                #expect((answer.status, answer.json["accepted"]) == (422, 0), "\(answer)")
                #expect(answer.json["rejected"]?.array?.first?["error"]?.string?.isEmpty == false)
                let empty = try await gateway.request("POST", "/v1/ingest/Reading", token: try await gateway.anonymousToken())
                #expect((empty.status, empty.code) == (400, Int(ErrorCode.badJSON.rawValue)), "\(empty)")
            }
        }
    }
}
