import Foundation
import SluiceCore
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The dead-letter topic` {
    private static func refuse(_ gateway: RunningGateway, _ id: String) async throws {
        let line = #"{"_id":"\#(id)","store":"north","value":1000}"#
        let answer = try await gateway.request("POST", "/v1/ingest/Reading", line, token: try await gateway.anonymousToken())
        #expect(answer.status == 200)
    }

    @Test func `is told of a letter once, also when the gateway ended before it noted that, and when its sender tries again`() async throws
    {
        try await KafkaShop.with { shop in
            try await shop.sql("ALTER TABLE readings ADD CONSTRAINT mild CHECK (value < 100)")
            let first = try await shop.run { gateway in
                try await Self.refuse(gateway, "a")
                let letter = try #require(try await shop.deadLetters(1).first)
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected WHERE published", is: 1))
                return letter
            }
            // As a crash leaves it.
            try await shop.sql("UPDATE sluice.ingest_rejected SET published = false")
            try await shop.run { gateway in
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected WHERE published", is: 1))
                try await Self.refuse(gateway, "a")
                try await Self.refuse(gateway, "b")
                let letters = try await shop.deadLetters(2)
                #expect(letters[0] == first && letters[1]["object"]?.string?.contains(#""b""#) == true, "\(letters.map(\.text))")
                #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 2)
            }
        }
    }
}
