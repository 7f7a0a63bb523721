import NIOCore
import NIOPosix
import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension NetServer.Configuration {
    /// Binds the port for a moment, to find the error with which a server would fail to listen. A port of 0 always succeeds.
    ///
    /// - Throws: `portInUse`, or `configInvalid` for the address.
    package func requireFreePort() async throws {
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                // As for the server, a port whose last connections linger is free.
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: host, port: port).get()
            try await channel.close().get()
        } catch {
            throw listenError(error)
        }
    }

    /// Converts the errors of binding to `SluiceError`.
    func listenError(_ error: any Error) -> any Error {
        let place = "\(host):\(port)"
        switch error {
        case let error as IOError where error.errnoCode == EADDRINUSE:
            return SluiceError(
                .portInUse, "Port \(port) of \(host) is in use by another program.",
                fix: "Stop that program, or choose another port with \(portOption); 0 is any free one.")
        case let error as IOError where [EACCES, EADDRNOTAVAIL].contains(error.errnoCode):
            return SluiceError(
                .configInvalid, "The server may not listen on \(place).", fix: "Choose another host or port.", cause: ErrorCause(error))
        case is SocketAddressError, is NIOConnectionError:
            return SluiceError(.configInvalid, "The host of \(place) is not known.", fix: "Give an address of this machine.")
        default:
            return error
        }
    }
}
