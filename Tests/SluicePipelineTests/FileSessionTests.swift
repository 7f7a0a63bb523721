import SluiceCore
import SluicePorts
import SluiceWire
import Testing

@testable import SluicePipeline

@Suite struct `Sessions of one client replica` {
    private static func session(_ services: SessionServices, _ channel: KeptMessages = KeptMessages()) -> Session {
        Session(services: services, channel: channel)
    }

    private static func file(_ id: UInt64, session: UInt64) -> ClientFile {
        ClientFile(id: ClientID(rawValue: id), secret: [], changeset: 0, ingest: 0, session: session)
    }

    @Test func `end when a newer one begins, and only of that file`() {
        let (services, files) = (SessionFixture.services(), ClientSessions())
        let (first, second, other) = (Self.session(services), Self.session(services), Self.session(services))
        #expect(files.begin(first, of: Self.file(7, session: 1)) == nil)
        #expect(files.begin(other, of: Self.file(8, session: 1)) == nil)
        #expect(files.begin(second, of: Self.file(7, session: 2)) === first)
        #expect(files.count == 2)
    }

    @Test func `of two that begin at once the older ends, whichever comes last`() {
        let (services, files) = (SessionFixture.services(), ClientSessions())
        let (older, newer) = (Self.session(services), Self.session(services))
        #expect(files.begin(newer, of: Self.file(7, session: 2)) == nil)
        #expect(files.begin(older, of: Self.file(7, session: 1)) === older)
        // It was never in the other's place.
        files.end(older, of: Self.file(7, session: 1))
        let third = Self.session(services)
        #expect(files.begin(third, of: Self.file(7, session: 3)) === newer)
    }

    @Test func `are forgotten when they are over, but not for the end of an older one that comes late`() {
        let (services, files) = (SessionFixture.services(), ClientSessions())
        let (first, second, third) = (Self.session(services), Self.session(services), Self.session(services))
        _ = files.begin(first, of: Self.file(7, session: 1))
        _ = files.begin(second, of: Self.file(7, session: 2))
        files.end(first, of: Self.file(7, session: 1))
        #expect(files.count == 1)
        #expect(files.begin(third, of: Self.file(7, session: 3)) === second)
        files.end(third, of: Self.file(7, session: 3))
        #expect(files.count == 0)
    }
}
