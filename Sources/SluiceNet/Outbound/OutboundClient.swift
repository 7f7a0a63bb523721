import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import SluiceCore
package import SluicePorts
import Synchronization

/// Sends requests to other services over HTTP/1.1 and TLS.
///
/// It follows no redirect and exports no spans. The certificate of a service must have its name and lead to an authority of the machine, or
/// of the file given. Connections that are idle close after a minute, and all of them with the last reference to the client.
package final class OutboundClient: OutboundHTTP {
    /// The maximum number of connections to a host and port.
    package static let connectionsPerHost = 32
    /// The maximum number of requests at a time. The client fails further requests at once.
    package static let requests = 256
    /// The waits before a connection that failed is attempted again, in milliseconds. No byte of the request has been sent by then.
    static let connectionBackOff = [100, 300]

    private enum Outcome: Sendable {
        case answered(OutboundAnswer)
        case failed(SluiceError)
        case late
    }

    /// The clients by their addresses. A connection must not serve requests that may not reach its address.
    private let publicClient: HTTPClient
    private let privateClient: HTTPClient
    private let anyClient: HTTPClient
    private let running = Mutex(0)

    /// - Parameter authorities: A PEM file of further certificate authorities; nil for those of the machine alone.
    /// - Throws: `configInvalid` naming the file.
    package init(authorities: String? = nil) throws(SluiceError) {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authorities {
            tls.additionalTrustRoots = [.certificates(try TLSFiles.certificates(authorities, "file of authorities"))]
        }
        publicClient = Self.makeClient(.publicOnly, tls)
        privateClient = Self.makeClient(.privateOnly, tls)
        anyClient = Self.makeClient(.any, tls)
    }

    deinit {
        // Each client lives until its connections are closed.
        for client in [publicClient, privateClient, anyClient] { client.shutdown { _ in } }
    }

    package func send(_ request: OutboundRequest) async throws(SluiceError) -> OutboundAnswer {
        let target = try OutboundTarget(of: request)
        let isAdmitted = running.withLock { running in
            if running >= Self.requests { return false }
            running += 1
            return true
        }
        guard isAdmitted else {
            throw SluiceError(
                .tooManyRequests, "More than \(Self.requests) requests to other services run.",
                fix: "Try again in a few seconds.")
        }
        defer { running.withLock { $0 -= 1 } }
        switch await race(request, target) {
        case .answered(let answer): return answer
        case .failed(let error): throw error
        case .late:
            throw SluiceError(
                .outboundTimeout, "A service did not answer within \(request.milliseconds) ms.", value: target.host)
        }
    }

    /// Sends the request, until its time has passed or the caller is cancelled.
    private func race(_ request: OutboundRequest, _ target: OutboundTarget) async -> Outcome {
        await withTaskGroup(of: Outcome.self) { group in
            group.addTask {
                do throws(SluiceError) { return .answered(try await self.exchange(request, target)) } catch { return .failed(error) }
            }
            group.addTask {
                do {
                    try await Task.sleep(for: .milliseconds(request.milliseconds))
                    return .late
                } catch {
                    return .failed(SluiceError(.outboundFailed, "A request to a service was cancelled.", value: target.host))
                }
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? .late
        }
    }

    private func exchange(_ request: OutboundRequest, _ target: OutboundTarget) async throws(SluiceError) -> OutboundAnswer {
        var waits = Self.connectionBackOff.makeIterator()
        while true {
            do {
                // A deadline of the library would end with the head of the answer. `race` bounds the body, too.
                let response = try await client(for: target.reach).execute(Self.message(request), deadline: .distantFuture)
                let body = try await response.body.collect(upTo: request.answerBytes)
                return OutboundAnswer(
                    status: Int(response.status.code),
                    headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first },
                    body: Array(body.readableBytesView))
            } catch {
                // Only the connection failed, so that the service has not seen the request.
                guard error is NIOConnectionError, let wait = waits.next(), (try? await Task.sleep(for: .milliseconds(wait))) != nil else {
                    throw Self.error(error, request, target)
                }
            }
        }
    }

    private func client(for reach: OutboundReach) -> HTTPClient {
        switch reach {
        case .publicOnly: publicClient
        case .privateOnly: privateClient
        case .any: anyClient
        }
    }

    private static func message(_ request: OutboundRequest) -> HTTPClientRequest {
        var message = HTTPClientRequest(url: request.url)
        message.method = HTTPMethod(rawValue: request.method.rawValue)
        for header in request.headers { message.headers.add(name: header.name, value: header.value) }
        if request.method == .post { message.body = .bytes(ByteBuffer(bytes: request.body)) }
        return message
    }

    private static func error(_ error: any Error, _ request: OutboundRequest, _ target: OutboundTarget) -> SluiceError {
        if let refused = error as? RefusedAddress { return target.refusal(of: refused.address) }
        if error is NIOTooManyBytesError {
            return SluiceError(
                .outboundTooLarge, "The answer of a service is larger than \(request.answerBytes) bytes.", value: target.host)
        }
        return SluiceError(.outboundFailed, "A request to a service failed.", value: target.host, cause: ErrorCause(error))
    }

    private static func makeClient(_ reach: OutboundReach, _ tls: TLSConfiguration) -> HTTPClient {
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls, redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        configuration.tracing.tracer = nil
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connectionsPerHost
        // The pool would hide for seconds that an address is refused or a certificate is not valid.
        configuration.connectionPool.retryConnectionEstablishment = false
        // The check is on the connected address: the owner of a name can answer each look-up with another.
        configuration.http1_1ConnectionDebugInitializer = { channel in
            let address = NetworkAddress(channel.remoteAddress)
            if let address, reach.admits(address) { return channel.eventLoop.makeSucceededVoidFuture() }
            // The pool expects the failure before the end of the connection.
            channel.eventLoop.execute { channel.close(promise: nil) }
            return channel.eventLoop.makeFailedFuture(RefusedAddress(address: address))
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}

/// The end of a connection to an address that is not allowed.
private struct RefusedAddress: Error {
    let address: NetworkAddress?
}
