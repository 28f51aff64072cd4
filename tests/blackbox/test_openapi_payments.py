"""Scripts against a stateful fake of a payment API whose bodies are forms with brackets in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from executor import Executor

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).parent.parent / "data" / "payments.yaml"
SERVER = """
import socket
from aiohttp import web
from localstripe import server
server.store.dump_to_disk = lambda *_: None
sock = socket.create_server(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
web.run_app(server.app, sock=sock, print=None)
"""
KEY = "sk_test_51Payments"


@pytest.fixture(scope="module")
def payments() -> Iterator[str]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": ""}
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


@pytest.fixture
async def executor(payments: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Executor]:
    monkeypatch.setenv("PAYMENTS_KEY", KEY)
    async with Executor.open() as ex:
        report = await ex.add_openapi(
            "pay",
            DOCUMENT,
            base_url=payments,
            auth={"type": "scheme", "scheme": "bearerAuth"},
            secret="env:PAYMENTS_KEY",
            allow_private=["127.0.0.1"],
        )
        assert report.diagnostics == []
        await ex.toolbox.add_policy("pay", "*", "approve")
        yield ex


async def said(ex: Executor, code: str) -> Any:
    return (await ex.run("const pay = tools.pay.org.main;\n" + code)).unwrap()


async def test_a_script_keeps_customers(executor: Executor) -> None:
    result = await said(
        executor,
        """
        const made = await pay.customers.PostCustomers({ body: {
            email: "zoë+1@example.org", name: "Zoë & Söhne",
            address: { city: "Köln", line1: "Straße 1 #2", postal_code: "50667" },
            metadata: { order: "7 & 8", empty: "" }, preferred_locales: ["de", "en"],
        } });
        const changed = await pay.customers.PostCustomersCustomer({ id: made.id, body: { metadata: { order: "9" } } });
        const read = await pay.customers.GetCustomersCustomer({ id: made.id, expand: ["subscriptions"] });
        const listed = await pay.customers.GetCustomers({ email: "zoë+1@example.org", limit: 5 });
        const gone = await pay.customers.DeleteCustomersCustomer({ id: made.id });
        return { made, changed: changed.metadata, read, listed: listed.data.map(one => one.id), gone: gone.deleted }
        """,
    )
    made = result["made"]
    assert (made["email"], made["name"]) == ("zoë+1@example.org", "Zoë & Söhne")
    assert made["address"] == {"city": "Köln", "line1": "Straße 1 #2", "postal_code": "50667"}
    assert made["metadata"]["order"] == "7 & 8"
    assert made["preferred_locales"] == ["de", "en"]
    assert result["changed"]["order"] == result["read"]["metadata"]["order"] == "9"
    assert made["id"] in result["listed"]
    assert result["gone"] is True


async def test_a_script_sells_a_subscription(executor: Executor) -> None:
    result = await said(
        executor,
        """
        const plan = (id, amount, name) => pay.plans.PostPlans({ body: {
            id, currency: "eur", interval: "month", amount, product: { name }, metadata: { tier: name } } });
        const [basic] = await Promise.all([plan("basic", 500, "Basic"), plan("extra", 0, "Extra")]);
        const customer = await pay.customers.PostCustomers({ body: { email: "a@example.org" } });
        const card = await pay.payment_methods.PostPaymentMethods({ body: {
            type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2060, cvc: "123" } } });
        await pay.payment_methods.PostPaymentMethodsPaymentMethodAttach({ id: card.id, customer: customer.id });
        await pay.customers.PostCustomersCustomer({ id: customer.id, body: {
            invoice_settings: { default_payment_method: card.id } } });
        const sold = await pay.subscriptions.PostSubscriptions({ body: {
            customer: customer.id, expand: ["customer"],
            items: [{ plan: basic.id, quantity: 2 }] } });
        return { status: sold.status, customer: sold.customer.email,
                 items: sold.items.data.map(one => [one.plan.id, one.plan.amount, one.quantity]) }
        """,
    )
    assert result["customer"] == "a@example.org"
    assert result["items"] == [["basic", 500, 2]]
    assert result["status"] == "active"


async def test_a_script_learns_why_a_payment_was_declined_and_goes_on(executor: Executor) -> None:
    result = await said(
        executor,
        """
        const customer = await pay.customers.PostCustomers({ body: { email: "b@example.org" } });
        const card = async number => {
            const one = await pay.payment_methods.PostPaymentMethods({ body: {
                type: "card", card: { number, exp_month: 1, exp_year: 2060, cvc: "123" } } });
            return pay.payment_methods.PostPaymentMethodsPaymentMethodAttach({ id: one.id, customer: customer.id });
        };
        const declined = await card("4000000000000002").catch(e => ({ code: e.code, message: e.message }));
        const paid = await pay.payment_intents.PostPaymentIntents({ body: {
            amount: 1200, currency: "eur", customer: customer.id, payment_method: (await card("4242424242424242")).id,
            confirm: true } });
        const refund = await pay.refunds.PostRefunds({ payment_intent: paid.id, amount: 200 });
        const missing = await pay.customers.GetCustomersCustomer({ id: "cus_gone" }).catch(e => e.message);
        return { declined, paid: paid.status, refund: refund.amount, missing }
        """,
    )
    assert result["declined"]["code"] == "upstream_error"
    assert "402" in result["declined"]["message"]
    assert "declined" in result["declined"]["message"]
    assert (result["paid"], result["refund"]) == ("succeeded", 200)
    assert "404" in result["missing"]
